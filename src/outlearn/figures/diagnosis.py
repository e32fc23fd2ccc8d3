"""The pictures of a diagnosis: who is informative, the fields, the learning curve, the phase diagram."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from outlearn.figures.style import COLORS, RC
from outlearn.practice.position import boundary
from outlearn.theory.bayes import bound

if TYPE_CHECKING:
    from outlearn.practice import Diagnosis, Plan

__all__ = ["draw_curves", "draw_fields", "draw_phase", "draw_probabilities", "draw_quantiles"]

_SIZE = (4.6, 3.2)
_KEEP, _DOUBT, _DISCARD = "#009E73", "#E69F00", "#8C8C8C"
_HERE: dict[str, Any] = {"marker": "o", "markersize": 9, "color": "#D55E00", "markeredgecolor": "white"}


def _figure() -> tuple[Figure, Any]:
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.subplots()


def draw_probabilities(diagnosis: Diagnosis) -> Figure:
    """How probable it is that an example is informative with the right label, by verdict."""
    with rc_context(RC):
        figure, axes = _figure()
        verdicts = diagnosis.verdicts
        groups = [("discard", _DISCARD), ("doubtful", _DOUBT), ("keep", _KEEP)]
        axes.hist(
            [verdicts.keep_proba[verdicts.verdict == name] for name, _ in groups],
            bins=np.linspace(0.0, 1.0, 26),
            stacked=True,
            color=[color for _, color in groups],
            label=[f"{name} ({verdicts.counts[name]})" for name, _ in groups],
        )
        axes.set(xlabel="probability of being informative and rightly labelled", ylabel="examples")
        axes.set_xlim(0.0, 1.0)
        axes.legend(loc="upper center")
    return figure


def draw_fields(diagnosis: Diagnosis) -> Figure:
    """Cavity fields of the examples and the fitted mixture, in units of the noise."""
    with rc_context(RC):
        figure, axes = _figure()
        h, d = diagnosis.fields, diagnosis.separation
        e = diagnosis.effective
        right = 1.0 - e.contamination.value
        parts = [
            ("garbage", e.contamination.value, 0.0, _DISCARD),
            ("right labels", right * (1.0 - e.label_noise.value), d, _KEEP),
            ("wrong labels", right * e.label_noise.value, -d, COLORS["logistic"]),
        ]
        low, high = np.quantile(h, [0.001, 0.999])
        low, high = min(low, -3.0), max(high, d + 3.0)
        bins = min(max(round(2.0 * math.sqrt(h.size)), 15), 60)
        axes.hist(np.clip(h, low, high), bins=bins, density=True, color="0.88", label="examples")
        if not diagnosis.detected:  # what the mixture's parts would be called has no meaning
            parts = []
        x = np.linspace(low, high, 400)
        total = np.zeros_like(x)
        for name, weight, center, color in parts:
            if weight > 1e-3:
                density = weight * np.exp(-0.5 * (x - center) ** 2) / math.sqrt(2.0 * math.pi)
                axes.plot(x, density, color=color, linewidth=1.8, label=f"{name}, {weight:.0%}")
                total += density
        if parts:
            axes.plot(x, total, color="black", linewidth=1.0, linestyle="--", label="fitted mixture")
        axes.set(xlabel="projection on the centre, times label (noise units)", ylabel="density")
        axes.legend()
    return figure


def draw_curves(plan: Plan) -> Figure:
    """Learning curves with their bands, and where the data at hand are."""
    with rc_context(RC):
        figure, axes = _figure()
        colors = COLORS | {"lda": COLORS["square"]}
        for curve in plan.curves:
            color = colors[curve.learner]
            axes.plot(curve.n_samples, curve.error, color=color, linewidth=1.6, label=curve.learner)
            if curve.learner in ("bayes", "hebb"):
                axes.fill_between(
                    curve.n_samples, curve.low, curve.high, color=color, alpha=0.12, linewidth=0
                )
        if plan.n_now is not None:
            axes.axvline(plan.n_now, color="0.6", linewidth=0.8, linestyle=":")
            axes.plot(
                [plan.n_now], [plan.error_now], **_HERE, linestyle="none", label="you are here", zorder=5
            )
        axes.axhline(plan.target_error, color="#D55E00", linewidth=0.9, linestyle="--")
        axes.text(
            plan.curves[0].n_samples[0], plan.target_error, " target", va="bottom", color="#D55E00", size=8
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        lowest = min(0.5 * plan.target_error, 0.7 * (plan.error_now or 0.5))
        axes.set_ylim(max(lowest, 0.7 * plan.floor, 1e-5), 0.6)
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))
        axes.set(xlabel="examples", ylabel=f"{plan.kind} error (clean examples)")
        axes.legend(ncols=2)
    return figure


def draw_phase(diagnosis: Diagnosis, n_alphas: int = 19) -> Figure:
    """The best possible direction error over garbage and examples, soft selection's transition, the data."""
    with rc_context(RC):
        figure, axes = _figure()
        e = diagnosis.effective
        gamma, alpha, eta = e.gamma.value, e.alpha, float(np.clip(e.eta.value, -6.0, 8.0))
        alphas = np.geomspace(alpha / 20.0, alpha * 20.0, 40)
        etas = np.linspace(min(eta - 3.0, -2.0), max(eta + 3.0, 5.0), 50)
        error = np.arccos(np.sqrt(bound(alphas, etas, gamma)["reached"])) / np.pi
        mesh = axes.pcolormesh(
            etas, alphas, error.T, cmap="viridis_r", vmin=0.0, vmax=0.5, shading="gouraud", rasterized=True
        )
        figure.colorbar(mesh, ax=axes, label="direction error, best possible")
        coarse = np.geomspace(alphas[0], alphas[-1], n_alphas)
        lost = boundary(gamma, coarse, (float(etas[0]), float(etas[-1])))
        if np.isfinite(lost).any():
            axes.plot(lost, coarse, color="white", linewidth=2.0, label="transition of soft selection")
        axes.plot([eta], [alpha], **_HERE, linestyle="none", label="you are here", zorder=5)
        reach = [[eta - max(e.eta.low, etas[0])], [min(e.eta.high, etas[-1]) - eta]]
        axes.errorbar([eta], [alpha], xerr=np.maximum(reach, 0.0), color=_HERE["color"], linewidth=1.2)
        axes.set_yscale("log")
        axes.set_xlim(etas[0], etas[-1])
        shares = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.997])
        ticks = np.log(shares / (1.0 - shares))
        inside = (ticks >= etas[0]) & (ticks <= etas[-1])
        axes.set_xticks(ticks[inside], [f"{100 * s:g}" for s in shares[inside]])
        axes.grid(visible=False)
        axes.set(xlabel="garbage, per cent", ylabel="examples per feature")
        legend = axes.legend(
            loc="lower right", frameon=True, framealpha=0.55, facecolor="0.35", edgecolor="none"
        )
        for text in legend.get_texts():
            text.set_color("white")
    return figure


def draw_quantiles(diagnosis: Diagnosis) -> Figure:
    """Quantiles of the fields against those of the fitted mixture."""
    with rc_context(RC):
        figure, axes = _figure()
        g = diagnosis.goodness
        if g.quantiles_seen.size:
            ends = [
                min(g.quantiles_expected[0], g.quantiles_seen[0]),
                max(g.quantiles_expected[-1], g.quantiles_seen[-1]),
            ]
            axes.plot(ends, ends, color="0.6", linewidth=1.0)
            axes.plot(g.quantiles_expected, g.quantiles_seen, ".", color=COLORS["soft"], markersize=5)
        axes.set(xlabel="quantiles of the model", ylabel="quantiles of the data")
    return figure
