"""Finite-size scaling for figure 4: where runs begin to be lost, in words and as the inset."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np

from outlearn import theory
from outlearn.exceptions import DataError
from outlearn.figures.style import COLORS, Book
from outlearn.simulation import CampaignResult, Task
from outlearn.simulation.scaling import (
    ESTIMATORS,
    Comparison,
    FiniteSizeScaling,
    compare_with_theory,
    finite_size_scaling,
)

__all__ = ["draw_inset", "scalings", "sentences"]

_LAWS = {1.0: "1/N", 0.5: "N^(-1/2)"}  # by the exponent of 1/N; the first is the paper's

Scalings = dict[str, list[tuple[FiniteSizeScaling, Comparison | None]]]


def scalings(measured: CampaignResult, sizes: list[Task], bootstrap: int) -> Scalings:
    """Every estimator's extrapolation by each law that the runs allow, beside the exact transition."""
    out: Scalings = {}
    pairs = [(t, measured[t]) for t in sizes]
    for estimator, exponent in itertools.product(ESTIMATORS, _LAWS):
        try:
            found = finite_size_scaling(pairs, estimator, exponent=exponent, bootstrap=bootstrap)
        except DataError:  # too few sizes in common
            continue
        compared = None
        with contextlib.suppress(DataError):  # not located: said in the findings
            compared = compare_with_theory(found, between=(1.0, 5.5))
        out.setdefault(estimator, []).append((found, compared))
    return out


def sentences(
    measured: CampaignResult, sizes: list[Task], first: theory.Transition, compared: Scalings
) -> list[str]:
    """Say what every estimator extrapolates to, and over which η runs are lost."""
    return [*(_sentence(laws) for laws in compared.values()), *_rounding(measured, sizes, first, compared)]


def _sentence(laws: list[tuple[FiniteSizeScaling, Comparison | None]]) -> str:
    first = laws[0][0]
    sizes = ", ".join(
        f"{o.eta:.2f} (N = {o.n_features:.4g})"
        if np.isfinite(o.eta)
        else f"not located (N = {o.n_features:.4g}; in {100 * o.resolved:.0f} % of the resampled runs it is)"
        for o in first.onsets
    )
    words = [
        f"straight in {_LAWS[found.exponent]}, η = {found.eta:.3f} [{found.low:.3f}, {found.high:.3f}]"
        f"{f', χ² {found.misfit:.2g} per degree of freedom' if np.isfinite(found.misfit) else ''}: "
        f"{'agrees' if compared.agrees else 'does not agree'}"
        for found, compared in laws
        if compared is not None
    ]
    if not words:
        return f"The {first.estimator} estimator does not locate the transition in these runs: {sizes}."
    one = next(c for _, c in laws if c is not None)
    return (
        f"Finite-size scaling by {first.estimator}: η = {sizes}. At N = ∞ {'; '.join(words)} with the exact "
        f"theory's {one.value:.3f}, spinodals {one.lower_spinodal:.3f} to {one.upper_spinodal:.3f}."
    )


def _rounding(
    measured: CampaignResult,
    sizes: list[Task],
    first: theory.Transition,
    compared: Scalings,
) -> list[str]:
    """Over which η runs are lost at each size, and what that says about the law of the onset."""
    middle = 0.5 * (first.below.R + first.above.R)
    sure = []
    for n in sorted({t.n_features for t in sizes}):
        mine = sorted((t for t in sizes if t.n_features == n), key=lambda t: t.ensemble.eta)
        lost = [float(np.mean(np.array(measured[t].R.values) < middle)) for t in mine]
        tenth, half = (_passed([t.ensemble.eta for t in mine], lost, share) for share in (0.1, 0.5))
        if half > tenth:
            sure.append((n, tenth, half))
    if len(sure) < 3:
        return []
    n, tenths, halves = np.array(sure).T
    power = -float(np.polyfit(np.log(n), np.log(halves - tenths), 1)[0])
    early = ", ".join(f"{x:.2f} (N = {size:g})" for size, x in zip(n, tenths, strict=True))
    late = ", ".join(f"{x:.2f}" for x in halves)
    out = [
        f"A run is lost if it ends with R < {middle:.2f}, half way between the two solutions. A tenth of the "
        f"runs are lost at η = {early}; half of them at {late}. The distance of the two falls as "
        f"N^(-{power:.2f})."
    ]
    verdicts = [c is not None and c.agrees for _, c in compared.get("broadening", [])]
    if verdicts == [False, True] and abs(power - 0.5) < abs(power - 1.0):
        out.append(
            "So half of the runs are lost at nearly the same η at every N, and the onset is where the width "
            "of that transition begins: what does not agree is the paper's straight line in 1/N, not the "
            "theory."
        )
    return out


def _passed(etas: list[float], lost: list[float], share: float) -> float:
    """η at which this share of the runs is lost for the first time, interpolated; NaN if it never is."""
    k = next((k for k, part in enumerate(lost) if part >= share), 0)
    if k == 0:
        return float("nan")
    return etas[k - 1] + (share - lost[k - 1]) / (lost[k] - lost[k - 1]) * (etas[k] - etas[k - 1])


def draw_inset(axes: Any, book: Book, compared: Scalings, first: theory.Transition) -> None:
    """Draw the onset at each size, as the paper does, with the lines to N = ∞ and the exact transition."""
    laws = [found for found, _ in compared.get("broadening", [])]
    if not laws:
        return
    found = laws[0]
    inset = axes.inset_axes((0.585, 0.09, 0.395, 0.5))
    known = [o for o in found.onsets if np.isfinite(o.eta)]
    x = np.array([1.0 / o.n_features for o in known])
    y = np.array([o.informative_fraction for o in known])
    # η falls as V̄ rises
    low = np.array([1.0 / (1.0 + np.exp(o.high)) for o in known])
    high = np.array([1.0 / (1.0 + np.exp(o.low)) for o in known])
    inset.errorbar(
        x,
        y,
        yerr=np.maximum(np.stack([y - low, high - y]), 0.0),
        fmt="o",
        color=COLORS["soft"],
        markerfacecolor="white",
        markersize=3.6,
        capsize=2,
        elinewidth=0.9,
    )
    book.write("inset", "onset of the transition", "runs", x=x, y=y, low=low, high=high)
    end = 1.08 * float(x.max()) if len(x) else 0.1
    for law, style in zip(laws, ("-", (0, (4, 2))), strict=False):
        if np.isfinite(law.eta):
            over = end * np.linspace(0.0, 1.0, 60) ** 2
            line = law.informative_fraction + law.slope * over**law.exponent
            inset.plot(over, line, color=COLORS["soft"], linewidth=0.9, linestyle=style)
            book.write("inset", f"straight line in {_LAWS[law.exponent]}", "fit", x=over, y=line)
    spinodals = [v for v in (first.upper_spinodal, first.lower_spinodal) if v is not None]
    window = [1.0 / (1.0 + np.exp(v)) for v in spinodals]
    exact = 1.0 / (1.0 + np.exp(first.value))
    span = 0.02 * end
    inset.plot([0.0, 0.0], window, color="black", linewidth=2.4, solid_capstyle="butt", clip_on=False)
    inset.plot([-span, span], [exact, exact], color="black", linewidth=1.4, clip_on=False)
    book.write("inset", "exact theory, spinodals", "equilibrium", x=0.0, y=[exact, *window])
    inset.set_xlim(-2.0 * span, end)
    inset.set_ylim(0.0, None)
    inset.set_title("onset: V̄₀ against 1/N", fontsize=7.8)
    inset.tick_params(labelsize=7)
    inset.patch.set_alpha(0.95)
