"""Figure 7: critical η of hard selection at α = ∞ against γ, as printed; and what the exact equations say."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from outlearn import theory
from outlearn.figures.compare import THEORY, draw_runs
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import COLORS, Book, Panel, legend
from outlearn.model import Ensemble
from outlearn.simulation import Task
from outlearn.theory.claims import critical_eta, critical_gamma

__all__ = ["draw"]

_GAMMAS = (0.2, 1.0, 10.0)
_SHADES = ("#F2A57B", "#D55E00", "#7A3300")


def draw(setting: Setting) -> Plate:
    """Make figure 7."""
    threshold, eta_there = critical_gamma()
    book = Book()
    figure = Figure(figsize=(10.2, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.0))

    panel = Panel(left, "a", book)
    gammas = np.concatenate(
        [[threshold * (1 + 1e-9)], np.geomspace(threshold, 10.0, setting.pick(120, 60, 6))[1:]]
    )
    printed = np.array([critical_eta(float(g), "printed") for g in gammas])
    panel.curve(
        gammas,
        printed,
        learner="hard",
        kind="printed",
        linewidth=1.6,
        series="hard, printed",
        label="as printed",
    )
    below = np.array([0.0, threshold])
    panel.curve(
        below, [0.0, 0.0], learner="hard", kind="printed", linewidth=1.6, series="hard, printed, below"
    )
    left.plot([threshold] * 2, [0.0, eta_there], color=COLORS["hard"], linewidth=0.8, linestyle=":")
    left.annotate(
        f"γ = {threshold:.4f}", (threshold, 0.0), xytext=(0.8, 0.3), fontsize=8, color=COLORS["hard"]
    )
    left.text(
        0.5,
        0.93,
        "exact: no finite critical η",
        transform=left.transAxes,
        ha="center",
        fontsize=8.5,
        color="black",
    )
    left.set(xlabel="γ", ylabel="critical η at α = ∞", xlim=(0.0, 10.0), ylim=(0.0, None))
    left.set_title("(a) Eq. etacinf, as printed")

    energy = Panel(middle, "b", book)
    etas = np.linspace(-1.0, 20.0, setting.pick(127, 64, 8))
    deepest = {}
    for gamma, color in zip(_GAMMAS, _SHADES, strict=True):
        gain = np.array([-theory.limit(THEORY["hard"], Ensemble(float(h), gamma)).energy for h in etas])
        energy.curve(
            etas,
            gain,
            learner="hard",
            series=f"hard, exact, γ = {gamma:g}",
            label=f"γ = {gamma:g}",
            color=color,
        )
        deepest[gamma] = float(gain.min())
        critical = critical_eta(gamma, "printed")
        if 0.0 < critical < etas[-1]:
            middle.axvline(critical, color=color, linewidth=0.8, linestyle=":")
            book.write("b", f"hard, printed critical η, γ = {gamma:g}", "printed", x=critical, y=np.nan)
    middle.set_yscale("log")
    middle.set(xlabel="η", ylabel="-(free energy per example) at α = ∞", xlim=(-1.0, 20.0))
    middle.set_title("(b) exact: learning always pays\n(trivial solution: 0; dotted: the printed critical η)")
    legend(middle, loc="lower left")

    finite = Panel(right, "c", book)
    gamma, eta = 0.2, 0.5
    alphas = setting.pick(
        (50.0, 200.0, 1000.0, 5000.0, 20000.0), (50.0, 200.0, 1000.0, 5000.0), (50.0, 200.0)
    )
    tasks = [
        Task(
            learner="hard",
            ensemble=Ensemble(eta, gamma),
            n_features=20,
            alpha=alpha,
            runs=setting.pick(100, 20, 3) if alpha < 10000 else setting.pick(20, 5, 2),
            start=start,
            draw="dense",
        )
        for alpha in alphas
        for start in ("random",)
    ]
    measured = setting.runs(tasks)
    x = np.geomspace(30.0, 30000.0, setting.pick(80, 50, 8))
    e = Ensemble(eta, gamma)
    found = theory.learning_curve(THEORY["hard"], e, x, branch="informative")
    finite.curve(
        x, [s.angle for s in found], learner="hard", series="hard, exact", label="exact, informative"
    )
    bound = theory.learning_curve(THEORY["amp"], e, x)
    finite.curve(x, [s.angle for s in bound], learner="bayes", kind="bound", label="Bayes bound")
    draw_runs(
        finite,
        measured,
        "Phi",
        over="alpha",
        learner="hard",
        series="hard, runs, N = 20",
        label="EM, random starts, N = 20",
    )
    right.set_xscale("log")
    right.set(xlabel="α", ylabel="Φ", ylim=(0.0, 0.55))
    right.set_title(f"(c) γ = {gamma:g} < {threshold:.3f}, η = {eta:g}:\nby the print nothing is learnt")
    legend(right, loc="upper right")

    last = tasks[-1]
    s = measured[last]
    exact = theory.solve(THEORY["hard"], e, last.alpha, branch="informative").angle
    return Plate(
        name="fig7",
        title="Hard selection at infinitely many examples",
        caption="(a) The paper's figure 7, from Eq. etacinf as printed. (b) Exact: minus the free energy "
        "per example of the best solution is positive at every η, so that the trivial solution (0) never "
        f"wins at α = ∞. (c) Runs where the print says that nothing can be learnt: γ = {gamma:g}, η = "
        f"{eta:g}, N = 20; bars: standard deviations over runs.",
        figure=figure,
        book=book,
        findings=[
            "The threshold γ = 0.278 of the paper is reproduced from the printed equation: "
            f"{threshold:.6f}, where its last roots merge at η = {eta_there:.4f}.",
            "The roots come from squaring R = p₁H₁/(Q₀ - z₀); at all of them Q₀ - z₀ < 0, so that R would "
            "be negative. The exact equations have no critical η at α = ∞: the smallest gain for η up to "
            "20 is " + ", ".join(f"{v:.2g} (γ = {g:g})" for g, v in deepest.items()) + ".",
            f"At γ = {gamma:g}, η = {eta:g}, α = {last.alpha:g}, N = 20: Φ = {s.Phi.mean:.4f} ± "
            f"{s.Phi.standard_error:.4f} in {s.n_runs} runs from random starts; exact theory {exact:.4f}. "
            "Learning is possible where the print excludes it.",
        ],
    )
