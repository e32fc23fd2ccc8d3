"""Figure 8, beyond the paper: which learner finds the direction at which outlier fraction and α."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from outlearn import theory
from outlearn.figures.compare import THEORY
from outlearn.figures.fig3_relief import stability_line
from outlearn.figures.fig5_critical import Row, bayes_rows, transition_lines
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import COLORS, Book, Panel, legend_below
from outlearn.theory.bayes import hard_phase_onset

__all__ = ["draw"]

_TICKS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)


def draw(setting: Setting) -> Plate:
    """Make figure 8."""
    alphas = np.union1d(np.geomspace(2.0, 200.0, setting.pick(60, 24, 2)), [20.0, 100.0])
    etas = np.linspace(0.0, 6.3, setting.pick(127, 64, 8))
    rows = {
        name: transition_lines(THEORY[name], alphas, (-0.5, 14.0))["direction"] for name in ("soft", "hard")
    }
    onset = hard_phase_onset(10.0)
    bayes = np.array(bayes_rows(onset + 1e-4, 5.9, setting.pick(80, 40, 4)))
    diagram = theory.phase_diagram(THEORY["soft"], gamma=10.0, alphas=alphas, etas=etas)
    broken = stability_line(diagram)
    best = theory.phase_diagram(THEORY["amp"], gamma=10.0, alphas=alphas, etas=etas).at_equilibrium("angle")

    book = Book()
    figure = Figure(figsize=(7.4, 6.2), layout="constrained")
    panel = Panel(figure.subplots(), "a", book)
    axes = panel.axes
    mesh = axes.pcolormesh(
        etas, alphas, best, cmap="Greys", vmin=0.0, vmax=1.0, shading="nearest", rasterized=True
    )
    figure.colorbar(
        mesh,
        ax=axes,
        label="Φ of the Bayes bound",
        boundaries=np.linspace(0.0, 0.5, 51),
        ticks=[0, 0.1, 0.2, 0.3, 0.4, 0.5],
    )
    grid_eta, grid_alpha = np.meshgrid(etas, alphas)
    book.write("a", "Bayes bound", "map", x=grid_eta.ravel(), y=grid_alpha.ravel(), angle=best.ravel())
    for name, label in (("soft", "soft selection"), ("hard", "hard selection")):
        _window(panel, rows[name], name, f"{name}, between spinodals")
        _line(
            panel, rows[name], 1, name, "equilibrium", f"{name}, first order", f"{label} (MAP): first order"
        )
        _line(panel, rows[name], 2, name, "metastable", f"{name}, lower spinodal", f"{label}: spinodals")
        _line(panel, rows[name], 3, name, "metastable", f"{name}, upper spinodal", None)
    panel.curve(
        bayes[:, 1],
        bayes[:, 0],
        learner="bayes",
        series="bayes, first order",
        label="Bayes bound: first order",
    )
    panel.curve(
        bayes[:, 1],
        bayes[:, 3],
        learner="amp",
        series="amp, spinodal",
        label="AMP reaches the bound above this (spinodal)",
    )
    panel.axes.fill_betweenx(
        np.linspace(0.0, 1.0, 2),
        0.0,
        0.0,
        color=COLORS["amp"],
        alpha=0.3,
        label="hard phase: possible, not by AMP",
    )
    panel.axes.fill_between(
        bayes[:, 1], bayes[:, 0], bayes[:, 3], color=COLORS["amp"], alpha=0.3, linewidth=0.0
    )
    if len(broken):
        panel.curve(
            broken[:, 1],
            broken[:, 0],
            learner="soft",
            kind="bound",
            series="soft, AT line",
            label="AT line: soft selection is replica symmetric to its left",
            color="#CC79A7",
        )
    axes.contour(etas, alphas, best, levels=[0.25], colors=[COLORS["bayes"]], linewidths=0.8, linestyles=":")
    axes.plot([], [], color="black", linewidth=0.8, linestyle=":", label="Bayes bound: Φ = 1/4")
    axes.set_yscale("log")
    axes.set_yticks([2, 5, 10, 20, 50, 100, 200])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    ticks = np.array(_TICKS)
    axes.set_xticks(np.log(ticks / (1.0 - ticks)), [f"{100 * p:g} %" for p in ticks])
    axes.set(xlabel="outliers  (linear in η)", ylabel="α = P/N", xlim=(0.0, etas[-1]), ylim=(2.0, 200.0))
    axes.grid(False)
    axes.set_title("Who finds the direction, γ = γ̃ = 10")
    legend_below(figure, axes, 2)

    def at(name: str, alpha: float) -> float:
        table = bayes if name == "bayes" else np.array(rows[name]).reshape(-1, 4)
        return float(np.interp(alpha, table[:, 0], table[:, 1])) if len(table) else float("nan")

    return Plate(
        name="fig8",
        title="Phase diagram in outlier fraction and α",
        caption="Right of its solid line a learner has lost the direction. Shaded: between spinodals. "
        "Grey: direction error of the Bayes bound, which message passing (AMP) reaches up to its "
        "spinodal; between that and the bound's first-order line lies the hard phase.",
        figure=figure,
        book=book,
        findings=[
            *(
                f"At α = {alpha:g}: hard selection loses direction at η = {at('hard', alpha):.3f}, soft "
                f"selection at {at('soft', alpha):.3f}, the Bayes bound at {at('bayes', alpha):.3f}."
                for alpha in (20.0, 100.0)
            ),
            f"The bound has a first-order transition, hence a hard phase, for η > {onset:.4f}: at η = "
            f"{bayes[-1, 1]:.2g} AMP needs α = {bayes[-1, 3]:.4g} where {bayes[-1, 0]:.4g} is enough in "
            "principle.",
            "Beyond the AT line replica symmetry is broken for soft selection: there its lines are "
            "estimates.",
        ],
    )


def _line(
    panel: Panel, rows: list[Row], column: int, learner: str, kind: str, series: str, label: str | None
) -> None:
    table = np.array(rows).reshape(-1, 4)
    if len(table):
        panel.curve(table[:, column], table[:, 0], learner=learner, kind=kind, series=series, label=label)


def _window(panel: Panel, rows: list[Row], learner: str, series: str) -> None:
    table = np.array(rows).reshape(-1, 4)
    if len(table):
        panel.axes.fill_betweenx(
            table[:, 0], table[:, 2], table[:, 3], color=COLORS[learner], alpha=0.13, linewidth=0.0
        )
