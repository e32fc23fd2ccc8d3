"""Figure 2: Φ(α) of soft selection at η = 0 and at η = 4, where it drops at a first-order transition."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from outlearn import theory
from outlearn.figures.compare import (
    THEORY,
    agree,
    branch_lines,
    draw_branches,
    draw_runs,
    path_lines,
    verdict,
)
from outlearn.figures.fig1_learning_hebb import ALPHAS
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book, Panel, legend_below
from outlearn.model import Ensemble
from outlearn.simulation import grid

__all__ = ["draw"]

_LIGHT = "#66B2E0"  # the same blue, for the second value of η


def draw(setting: Setting) -> Plate:
    """Make figure 2."""
    few, many = Ensemble(eta=0.0, gamma=10.0), Ensemble(eta=4.0, gamma=10.0)
    n, runs = setting.pick(500, 200, 20), setting.pick(100, 40, 4)
    shared: dict[str, Any] = {"learner": "soft", "eta": 0.0, "runs": runs, "draw": "matrix-free"}
    alphas = setting.pick((*ALPHAS, 20.0, 40.0), (*ALPHAS, 20.0), (1.0, 4.0))
    easy = grid(n_features=n, alpha=alphas, **shared)
    # compared with the theory and not drawn
    large = grid(n_features=1000, alpha=alphas, **shared) if setting.size == "full" else []
    hard = grid(
        learner="soft",
        eta=4.0,
        n_features=setting.pick(1000, 200, 20),
        alpha=setting.pick((45.0, 60.0, 80.0, 100.0), (60.0, 80.0, 100.0), (60.0,)),
        runs=setting.pick(100, 10, 3),
        start="teacher",
        draw="matrix-free",
    )
    measured = setting.runs([*easy, *large, *hard])

    book = Book()
    figure = Figure(figsize=(6.6, 5.2), layout="constrained")
    panel = Panel(figure.subplots(), "a", book)
    fine = setting.pick(200, 100, 12)
    looks: tuple[dict[str, Any], dict[str, Any]] = ({}, {"color": _LIGHT})
    for e, style, name in ((few, looks[0], "η = 0"), (many, looks[1], "η = 4")):
        between = (0.3, 110.0)
        bound = branch_lines(THEORY["amp"], e, 1.0, over="alpha", between=between, n=3 * fine)
        draw_branches(
            panel,
            bound,
            "angle",
            learner="bayes",
            series=f"bayes, {name}",
            label=f"Bayes bound, {name}",
            bound=True,
            color="black" if e is few else "0.5",
        )
        printed = path_lines(
            theory.follow(
                theory.SoftSelection("printed"), e, 1.0, over="alpha", start=110.0, stop=0.3, max_step=0.08
            )
        )
        draw_branches(
            panel, printed, "angle", learner="soft", printed=True, series=f"soft, printed, {name}", **style
        )
        lines = branch_lines(THEORY["soft"], e, 1.0, over="alpha", between=between, n=fine)
        draw_branches(
            panel,
            lines,
            "angle",
            learner="soft",
            series=f"soft, {name}",
            label=f"soft selection, {name}",
            **style,
        )
    for tasks, style, text in (
        (easy, {}, f"runs from random starts, N = {n}"),
        (hard, {"color": _LIGHT, "fmt": "s"}, f"runs from B, N = {hard[0].n_features}"),
    ):
        draw_runs(
            panel,
            [(t, measured[t]) for t in tasks],
            "Phi",
            over="alpha",
            learner="soft",
            series=f"soft, runs, η = {tasks[0].ensemble.eta:g}",
            label=text,
            **style,
        )
    panel.axes.plot([], [], color="0.3", linewidth=0.7, label="as printed (thin)")
    panel.axes.plot([], [], color="0.3", linestyle=(0, (5, 2)), linewidth=1.2, label="metastable")
    panel.axes.plot([], [], color="0.3", linestyle=(0, (1.2, 1.6)), linewidth=1.1, label="unstable")
    panel.axes.set_xscale("log")
    panel.axes.xaxis.set_major_formatter("{x:g}")
    panel.axes.set(xlim=(0.3, 110.0), ylim=(0.0, 0.52), xlabel="α = P/N", ylabel="Φ")
    panel.axes.set_title("Learning curves of soft selection, γ = γ̃ = 10")
    legend_below(figure, panel.axes)

    (jump,) = theory.transitions(THEORY["soft"], many, over="alpha", between=(1.0, 110.0))
    c = theory.limit(THEORY["soft"], few)
    at = theory.solve(THEORY["soft"], few, 100.0).angle
    points = agree([(t, measured[t]) for t in (*easy, *large, *hard)])
    return Plate(
        name="fig2",
        title="Learning curves of soft selection",
        caption="Φ(α) at η = 0 and 4, γ = γ̃ = 10. Solid: equilibrium; dashed: metastable; dotted: "
        f"unstable; thin: as printed. Circles: EM from random starts, N = {n}, {runs} runs; squares: EM "
        f"from B, N = {hard[0].n_features}, {hard[0].runs} runs. Bars: standard deviations over runs."
        + setting.pick(" Compared with the theory from random starts at N = 1000 too.", ""),
        figure=figure,
        book=book,
        agreement=points,
        findings=[
            f"At η = 4 the error drops from Φ = {jump.below.angle:.3f} to {jump.above.angle:.3f} at α = "
            f"{jump.value:.4f}; both branches exist for α from {jump.lower_spinodal:.3f} to "
            f"{jump.upper_spinodal:.3f}. The sudden drop of the paper is there.",
            f"At η = 0, Φ(100) = {at:.5f}; the asymptote √(c/α)/(π R_∞) with R_∞ = {c.R_inf:.6g} gives "
            f"{c.angle(100.0):.5f}.",
            *verdict(points),
        ],
    )
