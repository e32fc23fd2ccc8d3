"""Figure 1: Δ(α) of soft selection and of the Hebb rule, at half the examples garbage."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from outlearn import theory
from outlearn.figures.compare import THEORY, agree, draw_runs, verdict
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book, Panel, legend
from outlearn.model import Ensemble
from outlearn.simulation import grid

__all__ = ["ALPHAS", "draw"]

ALPHAS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def draw(setting: Setting) -> Plate:
    """Make figure 1."""
    e = Ensemble(eta=0.0, gamma=10.0)
    n, runs = setting.pick(500, 200, 20), setting.pick(100, 40, 4)
    alphas = setting.pick(ALPHAS, ALPHAS, (1.0, 4.0))
    shared: dict[str, Any] = {"eta": 0.0, "alpha": alphas, "runs": runs, "draw": "matrix-free"}
    # those of the largest size are compared with the theory and not drawn
    measured = setting.runs(
        grid(learner=["soft", "hebb"], n_features=setting.pick((n, 1000), (n,)), **shared)
    )

    book = Book()
    figure = Figure(figsize=(6.2, 4.3), layout="constrained")
    panel = Panel(figure.subplots(), "a", book)
    x = np.geomspace(0.05, 10.5, setting.pick(160, 80, 12))
    exact = theory.learning_curve(THEORY["soft"], e, x)
    printed = theory.learning_curve(theory.SoftSelection("printed"), e, x)
    hebb = theory.learning_curve(THEORY["hebb"], e, x)
    best = theory.learning_curve(theory.BayesOptimal(), e, x)
    panel.curve(x, [s.distance for s in hebb], learner="hebb", label="Hebb rule")
    limit = theory.limit(THEORY["hebb"], e).distance
    panel.curve(
        x[[0, -1]],
        [limit, limit],
        learner="hebb",
        kind="asymptote",
        series="hebb, α = ∞",
        label="Hebb, α = ∞",
    )
    panel.curve(x, [s.distance for s in exact], learner="soft", label="soft selection, exact")
    # NO_SOLUTION and NOT_DEFINED leave an infinite error: the printed integrals do not exist there
    there = np.array([np.isfinite(s.quadrature_error) for s in printed])
    gap = np.where(there, [s.distance for s in printed], np.nan)
    panel.curve(
        x, gap, learner="soft", kind="printed", series="soft, printed", label="soft selection, as printed"
    )
    panel.curve(x, [s.distance for s in best], learner="bayes", kind="bound", label="Bayes bound")
    for name, label in (("hebb", "Hebb rule, runs"), ("soft", "soft selection, runs")):
        pairs = [(t, s) for t, s in measured if t.learner == name and t.n_features == n]
        draw_runs(
            panel,
            pairs,
            "Delta",
            over="alpha",
            learner=name,
            series=f"{name}, runs",
            label=f"{label}, N = {n}",
        )
    panel.axes.set(xlim=(0.0, 10.5), ylim=(0.0, 1.0), xlabel="α = P/N", ylabel="Δ = Q - 2R + 1")
    panel.axes.set_title("η = 0 (half the examples are outliers), γ = γ̃ = 10")
    legend(panel.axes, loc="upper right")

    points = agree(measured, quantities="R Q Delta")
    at = {t: theory.solve(THEORY[t], e, 10.0).distance for t in ("soft", "hebb")}
    return Plate(
        name="fig1",
        title="Soft selection and the Hebb rule",
        caption="Δ(α) at η = 0, γ = γ̃ = 10. Lines: theory; circles: EM from random starts and the Hebb "
        f"rule, N = {n}, {runs} runs; bars: standard deviations over runs."
        + setting.pick(" Compared with the theory at N = 1000 too.", ""),
        figure=figure,
        book=book,
        agreement=points,
        findings=[
            f"At α = 10, Δ is {at['soft']:.4f} for soft selection and {at['hebb']:.4f} for Hebb, whose "
            f"limit is {limit:.4f}: as in the paper, selecting is what recovers B.",
            f"The printed equations have no solution below α = {x[there].min():.3g}, and differ from the "
            f"exact ones by at most {np.nanmax(np.abs(gap - [s.distance for s in exact])):.3f} in Δ above "
            "it.",
            *verdict(points),
        ],
    )
