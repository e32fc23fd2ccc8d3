"""Figure 4: Φ(η) of soft selection at α = 20 through its two transitions, with finite-size scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
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
from outlearn.figures.fig4_scaling import draw_inset, scalings, sentences
from outlearn.figures.plate import Agreement, Plate, Setting
from outlearn.figures.style import COLORS, Book, Panel, legend, legend_below
from outlearn.model import Ensemble
from outlearn.simulation import Task, grid

__all__ = ["ALPHA", "draw"]

ALPHA = 20.0
_BETWEEN = (-1.0, 10.5)


def draw(setting: Setting) -> Plate:
    """Make figure 4."""
    e = Ensemble(eta=0.0, gamma=10.0)
    main, sizes, large = _tasks(setting)
    measured = setting.runs([*main, *sizes, *large])

    book = Book()
    figure = Figure(figsize=(7.2, 7.8), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1.45, 1.0))
    fine = setting.pick(240, 160, 16)
    exact = branch_lines(THEORY["soft"], e, ALPHA, over="eta", between=_BETWEEN, n=fine)
    printed = path_lines(
        theory.follow(
            theory.SoftSelection("printed"), e, ALPHA, start=_BETWEEN[0], stop=_BETWEEN[1], max_step=0.08
        )
    )
    bound = branch_lines(THEORY["amp"], e, ALPHA, over="eta", between=_BETWEEN, n=fine)
    first, second = theory.transitions(THEORY["soft"], e, ALPHA, over="eta", between=(0.0, 12.0))

    panel = Panel(top, "a", book)
    for t in (first, second):
        top.axvspan(t.lower_spinodal, t.upper_spinodal, color="0.94", zorder=0.5)
    draw_branches(panel, bound, "angle", learner="bayes", label="Bayes bound", bound=True)
    draw_branches(
        panel, printed, "angle", learner="soft", printed=True, series="soft, printed", label="as printed"
    )
    draw_branches(panel, exact, "angle", learner="soft", label="soft selection, exact: equilibrium")
    top.plot([], [], color=COLORS["soft"], linestyle=(0, (5, 2)), linewidth=1.3, label="metastable")
    top.plot([], [], color=COLORS["soft"], linestyle=(0, (1.2, 1.6)), linewidth=1.1, label="unstable")
    draw_runs(
        panel,
        [(t, measured[t]) for t in main],
        "Phi",
        over="eta",
        learner="soft",
        series=f"soft, runs, N = {main[0].n_features}",
        label=f"EM from random starts, N = {main[0].n_features}",
    )
    if large:
        draw_runs(
            panel,
            [(t, measured[t]) for t in large],
            "Phi",
            over="eta",
            learner="soft",
            series=f"soft, runs, N = {large[0].n_features}",
            label=f"N = {large[0].n_features}",
            color="#003A5C",
            markerfacecolor="#003A5C",
            markersize=3.4,
        )
    top.set(xlim=(_BETWEEN[0] - 0.15, _BETWEEN[1]), ylim=(0.0, 0.56), ylabel="Φ")
    top.set_title(f"Soft selection at α = {ALPHA:g}, γ = γ̃ = 10 (grey: between spinodals)")
    legend_below(figure, top)

    order = Panel(bottom, "b", book)
    for quantity, color in (("R", "#0072B2"), ("Q", "#CC79A7")):
        draw_branches(
            order, exact, quantity, learner="soft", series=f"soft, {quantity}", color=color, label=quantity
        )
        draw_runs(
            order,
            [(t, measured[t]) for t in main],
            quantity,
            over="eta",
            learner="soft",
            series=f"soft, runs, {quantity}",
            color=color,
            markersize=3.4,
        )
    for t in (first, second):
        bottom.axvspan(t.lower_spinodal, t.upper_spinodal, color="0.94", zorder=0.5)
    bottom.set(ylim=(-0.18, 1.12), xlabel="η   (outliers are 1/(1 + e^-η))", ylabel="R, Q")
    legend(bottom, loc="lower left", bbox_to_anchor=(0.02, 0.1))

    compared = scalings(measured, sizes, bootstrap=setting.pick(400, 200, 8))
    draw_inset(top, book, compared, first)
    points = agree([(t, measured[t]) for t in (large or main)])
    return Plate(
        name="fig4",
        title="The transition of soft selection",
        caption=f"Φ (a) and R, Q (b) against η at α = {ALPHA:g}. Lines: theory; circles: EM from random "
        f"starts, {main[0].runs} runs{_counts(large)}; bars are standard deviations over runs. Inset: "
        "onset of the transition (the distribution of R broadens) as the fraction V̄ of informative "
        "examples against 1/N, straight lines to N = ∞ in 1/N (solid) and in N^(-1/2) (dashed), and the "
        "exact theory (bar: between the spinodals).",
        figure=figure,
        book=book,
        agreement=points,
        table=[c.to_dict() for laws in compared.values() for _, c in laws if c is not None],
        findings=[
            f"First order at η = {first.value:.6f}, spinodals {first.lower_spinodal:.4f} and "
            f"{first.upper_spinodal:.4f}: Φ jumps from {first.below.angle:.4f} to "
            f"{first.above.angle:.4f}, to a state with Q = {first.above.Q:.3f} but hardly any overlap; "
            "there replica symmetry does not hold (AT).",
            f"A second one at η = {second.value:.4f} (spinodals {second.lower_spinodal:.4f} and "
            f"{second.upper_spinodal:.4f}) is the collapse of Q: the paper's large error bar at η = 6.8 "
            "lies between its spinodals.",
            *sentences(measured, sizes, first, compared),
            *verdict(points),
            *_above(points),
        ],
    )


def _above(points: list[Agreement]) -> list[str]:
    """How far above the energy of the theory runs end where replica symmetry is broken."""
    gaps = [
        p.energy - p.lowest
        for p in points
        if p.zone == "outside" and not p.stable and p.energy is not None and p.lowest is not None
    ]
    if not gaps or min(gaps) <= 0.0:
        return []
    return [
        f"Where replica symmetry is broken runs end {min(gaps):.2f} to {max(gaps):.2f} per dimension above "
        "the energy of the replica-symmetric solution. That solution is not stable and puts the energy too "
        "low, and EM stops in minima that are not the lowest: no agreement is to be expected there."
    ]


def _counts(large: list[Task]) -> str:
    """How many runs the largest size has, by the η up to which."""
    last: dict[int, float] = {}
    for task in large:
        last[task.runs] = max(task.ensemble.eta, last.get(task.runs, -np.inf))
    if not last:
        return ""
    words = ", ".join(f"{runs} up to η = {eta:g}" for runs, eta in last.items())
    return f"; dots: N = {large[0].n_features}, runs: {words}"


def _tasks(setting: Setting) -> tuple[list[Task], list[Task], list[Task]]:
    """Runs of the main figure, of the scaling, and of the check at the largest size."""
    wide = setting.pick(
        (
            -1.0,
            -0.5,
            0.0,
            0.5,
            1.0,
            1.5,
            2.0,
            2.5,
            3.0,
            3.25,
            3.5,
            3.75,
            4.0,
            4.5,
            5.0,
            5.5,
            6.0,
            6.4,
            6.8,
            7.2,
            7.6,
            8.0,
            9.0,
            10.0,
        ),
        (-1.0, 0.0, 1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 6.8, 7.5, 8.0, 9.0, 10.0),
        (0.0, 2.0, 8.0),
    )
    runs = setting.pick(100, 40, 4)
    shared: dict[str, Any] = {"learner": "soft", "alpha": ALPHA}
    main = grid(eta=wide, n_features=setting.pick(100, 100, 20), runs=runs, **shared)
    near = setting.pick(
        # those of the largest size among them, so that sizes can be compared
        tuple(np.union1d(np.arange(0.5, 5.01, 0.125), (3.4, 3.6, 3.9, 4.05))),
        tuple(np.arange(1.0, 5.01, 0.5)),
        (1.0, 2.0, 3.0),
    )
    sizes = grid(
        eta=near, n_features=setting.pick((10, 25, 50, 100), (10, 25, 50, 100), (10, 20)), runs=runs, **shared
    )
    if setting.size != "full":
        return main, sizes, []
    easy = grid(
        eta=(-1.0, 0.0, 1.0, 2.0, 2.5, 2.75, 3.0, 3.25),
        n_features=1000,
        runs=100,
        draw="matrix-free",
        **shared,
    )
    slow: dict[str, Any] = {"n_features": 1000, "draw": "dense", "dtype": "float32"}
    # thousands of steps a run from here on
    hard = grid(eta=(3.4, 3.5), runs=24, **slow, **shared)
    hard += grid(eta=(3.6, 3.75), runs=16, **slow, **shared)
    hard += grid(eta=(3.9, 4.05), runs=8, **slow, **shared)
    glassy = grid(eta=(4.5, 5.0, 7.0, 9.0), runs=3, **slow, **shared)
    onset = [t for t in (*easy, *hard) if t.ensemble.eta >= 2.0]
    return main, [*sizes, *onset], [*easy, *hard, *glassy]
