"""Figure 6: Φ(η) of hard selection at α = 20; which minimum EM reaches depends on where it starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from outlearn import theory
from outlearn.figures.compare import THEORY, agree, branch_lines, draw_branches, draw_runs, verdict
from outlearn.figures.plate import Agreement, Plate, Setting
from outlearn.figures.style import COLORS, Book, Panel, legend_below
from outlearn.model import Ensemble
from outlearn.simulation import CampaignResult, Task, grid

__all__ = ["draw"]

ALPHA = 20.0
_BETWEEN = (-2.0, 7.0)
_KEPT = 0.4  # runs with a smaller Φ have found B, as those that the paper kept


def draw(setting: Setting) -> Plate:
    """Make figure 6."""
    e = Ensemble(eta=0.0, gamma=10.0)
    etas = setting.pick(
        tuple(np.arange(-2.0, 7.01, 0.5)), tuple(np.arange(-2.0, 7.01, 1.0)), (-1.0, 1.0, 6.5)
    )
    runs = setting.pick(100, 40, 4)
    small = setting.pick(100, 100, 20)
    shared: dict[str, Any] = {"learner": "hard", "alpha": ALPHA, "draw": "dense"}
    chance = grid(eta=etas, n_features=small, runs=runs, start="random", **shared)
    taught = grid(eta=etas, n_features=small, runs=runs, start="teacher", **shared)
    wide = setting.pick(
        (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0), (-1.0, 0.0, 1.0, 2.0), (-1.0,)
    )
    check = grid(
        learner="hard",
        alpha=ALPHA,
        eta=wide,
        n_features=setting.pick(1000, 300, 30),
        runs=runs,
        draw="matrix-free",
    )
    from_truth = grid(
        learner="hard",
        alpha=ALPHA,
        eta=[eta for eta in wide if 1.0 <= eta <= 2.0],
        n_features=check[0].n_features,
        runs=runs,
        start="teacher",
        draw="matrix-free",
    )
    measured = setting.runs([*chance, *taught, *check, *from_truth])

    book = Book()
    figure = Figure(figsize=(7.0, 5.4), layout="constrained")
    panel = Panel(figure.subplots(), "a", book)
    axes = panel.axes
    fine = setting.pick(240, 160, 16)
    draw_branches(
        panel,
        branch_lines(THEORY["amp"], e, ALPHA, over="eta", between=_BETWEEN, n=fine),
        "angle",
        learner="bayes",
        label="Bayes bound",
        bound=True,
    )
    draw_branches(
        panel,
        branch_lines(theory.HardSelection("printed"), e, ALPHA, over="eta", between=_BETWEEN, n=fine),
        "angle",
        learner="hard",
        printed=True,
        series="hard, printed",
        label="as printed (thin)",
    )
    exact = branch_lines(THEORY["hard"], e, ALPHA, over="eta", between=_BETWEEN, n=fine)
    draw_branches(panel, exact, "angle", learner="hard", label="hard selection, exact: equilibrium")
    axes.plot([], [], color=COLORS["hard"], linestyle=(0, (5, 2)), linewidth=1.3, label="metastable")
    axes.plot([], [], color=COLORS["hard"], linestyle=(0, (1.2, 1.6)), linewidth=1.1, label="unstable")
    dark: dict[str, Any] = {"color": "#7A3300", "markersize": 3.6}
    for tasks, name, style in (
        (chance, "random starts", {}),
        (taught, "started at B", {**dark, "fmt": "s"}),
        (check, "random starts", {**dark, "markerfacecolor": "#7A3300"}),
    ):
        draw_runs(
            panel,
            [(t, measured[t]) for t in tasks],
            "Phi",
            over="eta",
            learner="hard",
            series=f"hard, runs, {name}, N = {tasks[0].n_features}",
            label=f"EM, {name}, N = {tasks[0].n_features}",
            **style,
        )
    kept = [(t.ensemble.eta, [v for v in measured[t].Phi.values if v < _KEPT]) for t in chance]
    near_truth = {eta: len(v) for eta, v in kept}
    kept = [(eta, v) for eta, v in kept if len(v) > 1]
    if kept:
        x, y = [eta for eta, _ in kept], [float(np.mean(v)) for _, v in kept]
        axes.plot(
            x, y, "x", color="black", markersize=4.5, zorder=5, label=f"random starts, kept if Φ < {_KEPT}"
        )
        book.write("a", "hard, runs, kept", "runs", x=x, y=y, runs=[len(v) for _, v in kept])
    axes.set(
        xlim=(_BETWEEN[0] - 0.15, _BETWEEN[1] + 0.15),
        ylim=(0.0, 0.62),
        xlabel="η   (outliers are 1/(1 + e^-η))",
        ylabel="Φ",
    )
    axes.set_title(f"Hard selection at α = {ALPHA:g}, γ = γ̃ = 10")
    legend_below(figure, axes)

    found = theory.transitions(THEORY["hard"], e, ALPHA, over="eta", between=(-1.0, 8.0))
    printed = theory.transitions(theory.HardSelection("printed"), e, ALPHA, over="eta", between=(-1.0, 8.0))
    first, last = found[0], found[-1]
    lost = [t.ensemble.eta for t in chance if measured[t].Phi.mean > _KEPT]
    wrong = theory.solve(theory.HardSelection("printed"), e.replace(eta=2.0), ALPHA)
    best = theory.solve(THEORY["amp"], e.replace(eta=2.0), ALPHA)
    points = agree([(t, measured[t]) for t in check])
    return Plate(
        name="fig6",
        title="The transition of hard selection",
        caption=f"Φ against η at α = {ALPHA:g}. Lines: theory; circles and squares: EM for hard "
        f"selection, N = {small}, {runs} runs, from random starts and from B (which no learner knows); "
        f"dots: N = {check[0].n_features}; bars: standard deviations over runs; crosses: the runs from "
        "random starts that found B, as the paper kept them.",
        figure=figure,
        book=book,
        agreement=points,
        findings=[
            f"Exact: Φ jumps at η = {first.value:.4f} (spinodals {first.lower_spinodal:.4f} and "
            f"{first.upper_spinodal:.4f}) to a state with hardly any overlap, and only at η = "
            f"{last.value:.4f} does the trivial solution win. As printed there is one jump, at η = "
            f"{printed[0].value:.4f}.",
            f"At η = 2 the printed equations give Φ = {wrong.angle:.4f}, below the Bayes bound "
            f"{best.angle:.4f}: no learner can do that.",
            "The trivial solution exists from η = 0 on (printed: -2.5), so that every point beyond lies "
            "between spinodals. No other solution of hard selection is AT-stable: it has many minima.",
            (
                f"From random starts the mean of Φ passes {_KEPT} at η = {min(lost):g}, before the "
                "equilibrium changes: EM does not reach the lowest minimum, as the paper supposed."
                if lost
                else "From random starts EM finds B at every η that was run."
            ),
            *verdict(points),
            *_by_start(from_truth, measured),
            *_stuck(points, near_truth, small),
        ],
    )


def _by_start(from_truth: list[Task], measured: CampaignResult) -> list[str]:
    """What EM reaches from B and from random starts, at the largest η where all of these find B."""
    both = [(measured[t], measured[replace(t, start="random")], t) for t in from_truth]
    both = [pair for pair in both if max(pair[1].Phi.values) < _KEPT]
    if not both:
        return []
    taught, chance, task = both[-1]
    exact = theory.solve(THEORY["hard"], task.ensemble, ALPHA, branch="informative")
    return [
        f"Where EM starts decides which minimum it finds: at N = {task.n_features}, η = "
        f"{task.ensemble.eta:g}, Q = {taught.Q.mean:.4f} ± {taught.Q.standard_error:.4f} (energy "
        f"{taught.energy.mean:.3f} ± {taught.energy.standard_error:.3f}) from B, {chance.Q.mean:.4f} ± "
        f"{chance.Q.standard_error:.4f} ({chance.energy.mean:.3f} ± {chance.energy.standard_error:.3f}) from "
        f"random starts, {exact.Q:.4f} ({exact.free_energy:.3f}) exact: many minima, as where replica "
        "symmetry is broken."
    ]


def _stuck(points: list[Agreement], small: dict[float, int], n: int) -> list[str]:
    """The points where most runs do not find B although it has the lowest energy."""
    lost = [p for p in points if p.found is not None and 2 * p.found < p.runs]
    above = [p for p in lost if p.energy is not None and p.lowest is not None and p.energy > p.lowest]
    if not above:
        return []
    found = ", ".join(
        f"{p.eta:g} ({small.get(p.eta, 0)} of {p.runs} at N = {n} find B, {p.found} at N = {p.n_features})"
        for p in above
    )
    return [
        f"Most runs from random starts end far above the energy of the informative solution at η = {found}: "
        "with R near 0 but Q above 0, in minima where noise selects itself. No reachable solution of the "
        "theory is of that kind there; the trivial one, the nearest, is not where they are. It is where "
        "random starts lead, not a matter of N."
    ]
