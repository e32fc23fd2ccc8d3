"""Figure 9, beyond the paper: how well each learner tells informative examples from outliers (ROC)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from outlearn import theory
from outlearn.figures.compare import THEORY
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book, Panel, legend_below
from outlearn.inference.amp import amp
from outlearn.inference.hard import hard_em
from outlearn.inference.hebb import hebb
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, sample

__all__ = ["area", "draw", "true_positives"]

Array = NDArray[np.float64]

_LEARNERS = ("amp", "soft", "hard", "hebb")
_NAMES = {"amp": "AMP (Bayes bound)", "soft": "soft selection", "hard": "hard selection", "hebb": "Hebb rule"}


def true_positives(rate: Any, detectability: float) -> Any:
    """Fraction of the informative examples found when this fraction of the outliers is let through.

    An example's field is a rising function of what it would be had the example not been learnt (the proximal
    map), and that is Gaussian: mean R for informative examples, 0 for outliers, variance Q/γ for both. So
    the curve is Φ_N(Φ_N⁻¹(rate) + d), with the detectability d = √γ R/√Q.

    >>> round(float(true_positives(0.1, 2.0)), 4)
    0.7637
    """
    return ndtr(ndtri(rate) + detectability)


def area(detectability: float) -> float:
    """Area under that curve, Φ_N(d/√2).

    >>> round(area(2.0), 4)
    0.9214
    """
    return float(ndtr(detectability / math.sqrt(2.0)))


def draw(setting: Setting) -> Plate:
    """Make figure 9."""
    e = Ensemble.from_contamination(0.8, gamma=10.0)
    n, runs = setting.pick(500, 200, 30), setting.pick(40, 12, 3)
    shown = 2.0
    alphas = setting.pick((1.0, 2.0, 3.0, 5.0, 8.0, 12.0), (1.0, 2.0, 5.0, 10.0), (2.0, 4.0))
    rates = np.geomspace(0.01, 0.9, 24)
    measured = {alpha: _measure(e, n, alpha, runs, rates, setting.seed) for alpha in alphas}

    book = Book()
    figure = Figure(figsize=(9.4, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    roc, areas = Panel(left, "a", book), Panel(right, "b", book)
    x = np.geomspace(0.008, 1.0 - 1e-9, 200)
    grid_alpha = np.geomspace(0.3, 14.0, setting.pick(80, 40, 8))
    ideal = math.sqrt(e.gamma)
    roc.axes.plot(x, x, color="0.8", linewidth=0.8, label="chance")
    known: dict[str, Any] = {"learner": "bayes", "kind": "asymptote", "series": "B known", "label": "B known"}
    roc.curve(x, true_positives(x, ideal), **known)
    areas.curve([0.3, 14.0], [area(ideal)] * 2, **known)
    worst = []
    for k, name in enumerate(_LEARNERS):
        here = theory.solve(THEORY[name], e, shown)
        roc.curve(x, true_positives(x, _detectability(here)), learner=name, label=_NAMES[name])
        curve = theory.learning_curve(THEORY[name], e, grid_alpha)
        areas.curve(grid_alpha, [area(_detectability(s)) for s in curve], learner=name, label=_NAMES[name])
        found = measured[shown][name][:, :-1]
        roc.runs(
            rates[k::4],
            found.mean(axis=0)[k::4],
            deviation=found.std(axis=0, ddof=1)[k::4],
            error=found.std(axis=0, ddof=1)[k::4] / math.sqrt(runs),
            count=runs,
            learner=name,
            series=f"{name}, runs",
            markersize=3.2,
        )
        values = np.array([measured[alpha][name][:, -1] for alpha in alphas])
        deviation = values.std(axis=1, ddof=1)
        areas.runs(
            alphas,
            values.mean(axis=1),
            deviation=deviation,
            error=deviation / math.sqrt(runs),
            count=runs,
            learner=name,
            series=f"{name}, runs",
            beside=0.94 + 0.04 * k,
        )
        for alpha, value, spread in zip(alphas, values.mean(axis=1), deviation, strict=True):
            exact = area(_detectability(theory.solve(THEORY[name], e, alpha)))
            worst.append((abs(value - exact) / (spread / math.sqrt(runs)), name, alpha, value, exact))
    left.set(
        xlabel="outliers let through",
        ylabel="informative examples found",
        xlim=(0.008, 1.0),
        ylim=(0.0, 1.01),
    )
    left.set_title(f"(a) ROC at α = {shown:g}, {100 * e.outlier_fraction:g} % outliers, γ = 10")
    left.set_xscale("log")
    left.xaxis.set_major_formatter("{x:g}")
    left.plot([], [], "o", color="0.4", markerfacecolor="white", label=f"runs, N = {n}")
    right.set_xscale("log")
    right.set_xticks([0.5, 1, 2, 5, 10])
    right.xaxis.set_major_formatter("{x:g}")
    right.xaxis.set_minor_formatter("")
    right.set(xlabel="α = P/N", ylabel="area under the ROC curve", xlim=(0.3, 14.0), ylim=(0.5, 1.01))
    right.set_title("(b) area under the curve against α")
    legend_below(figure, left, 7)
    at_two = {name: area(_detectability(theory.solve(THEORY[name], e, 2.0))) for name in _LEARNERS}
    good = sum(w[0] <= 3.0 for w in worst)
    top = max(worst)
    return Plate(
        name="fig9",
        title="Detection of the informative examples",
        caption="Examples ranked by their field: theory (lines) and runs (circles, bars are standard "
        f"deviations over runs) on the training examples themselves; N = {n}, {runs} runs, soft selection "
        "from random starts, hard selection from what soft selection found.",
        figure=figure,
        book=book,
        findings=[
            f"{good} of {len(worst)} areas under the curve lie within three standard errors of the exact "
            f"theory; the farthest is {_NAMES[top[1]]} at α = {top[2]:g}: {top[3]:.4f} in runs, "
            f"{top[4]:.4f} in theory ({top[0]:.1f} standard errors).",
            "At α = 2: "
            + ", ".join(f"{_NAMES[name]} {value:.4f}" for name, value in at_two.items())
            + f"; with B known {area(ideal):.4f}.",
        ],
    )


def _detectability(point: theory.SaddlePoint) -> float:
    return math.sqrt(point.ensemble.gamma) * point.overlap


def _measure(e: Ensemble, n: int, alpha: float, runs: int, rates: Array, seed: int) -> dict[str, Array]:
    """Rows of true-positive rates at ``rates``, then the area, one row a run."""
    out: dict[str, list[Array]] = {name: [] for name in _LEARNERS}
    known: dict[str, Any] = {"contamination": e.outlier_fraction, "noise_variance": 1.0 / e.gamma}
    for run in range(runs):
        root = np.random.SeedSequence(seed, spawn_key=(round(1000 * alpha), n, run))
        rng = np.random.default_rng(root)
        data = sample(e, n, round(alpha * n), rng)
        while not 0 < data.informative.sum() < data.n_samples:
            data = sample(e, n, round(alpha * n), rng)
        soft = soft_em(data.X, data.y, init="random", n_init=1, accelerate=False, rng=rng, **known)
        fits: dict[str, Any] = {
            "amp": amp(data.X, data.y, rng=rng, **known),
            "soft": soft,
            # from random starts hard selection often ends with nothing selected (figure 6)
            "hard": hard_em(data.X, data.y, init=soft.center, n_init=1, accelerate=False, **known),
            "hebb": hebb(data.X, data.y, noise_variance=1.0 / e.gamma),
        }
        for name, fit in fits.items():
            score = data.y * (data.X @ fit.center)
            out[name].append(_roc(score, data.informative, rates))
    return {name: np.array(rows) for name, rows in out.items()}


def _roc(score: Array, informative: NDArray[np.bool_], rates: Array) -> Array:
    """True-positive rate at each false-positive rate, then the area: the share of pairs in right order."""
    outliers = np.sort(score[~informative])
    threshold = np.quantile(outliers, 1.0 - rates)
    found = (score[informative][:, None] > threshold).mean(axis=0)
    order = np.searchsorted(outliers, score[informative]) / len(outliers)
    return np.append(found, order.mean())
