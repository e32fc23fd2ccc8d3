"""Finite-size scaling for figure 4: where runs begin to be lost, in words and as the inset."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

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

Array = NDArray[np.float64]
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
    """Say what every estimator extrapolates to, over which η runs are lost, and which law that follows."""
    out = [_extrapolated(laws) for laws in compared.values()]
    for laws in compared.values():
        gap = next((o.n_features for o in laws[0][0].onsets if not np.isfinite(o.eta)), None)
        if laws[0][0].estimator == "binder" and gap is not None:
            out += _no_crossing(measured, sizes, gap)
    return [*out, *_lost(measured, sizes, first), *_law(compared.get("broadening", []))]


def _extrapolated(laws: list[tuple[FiniteSizeScaling, Comparison | None]]) -> str:
    first = laws[0][0]
    sizes = ", ".join(
        f"{f'{o.eta:.2f}' if np.isfinite(o.eta) else 'not located'} (N = {o.n_features:.4g})"
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


def _no_crossing(measured: CampaignResult, sizes: list[Task], middle: float) -> list[str]:
    """Why the ratios of two sizes, whose geometric mean is given, do not cross."""
    known = sorted({t.n_features for t in sizes})
    small, large = next((a, b) for a, b in itertools.pairwise(known) if np.isclose(np.sqrt(a * b), middle))
    mine = {n: {t.ensemble.eta: measured[t].R for t in sizes if t.n_features == n} for n in (small, large)}
    eta = max(set(mine[small]) & set(mine[large]))
    one, two = (np.array(mine[n][eta].values) for n in (small, large))
    ratio = [float(np.mean(R**2) ** 2 / np.mean(R**4)) for R in (one, two)]
    if ratio[1] <= ratio[0]:
        return []
    return [
        f"The Binder-type ratios of N = {small} and {large} do not cross: at η = {eta:g}, beyond the "
        f"transition, they are {ratio[0]:.2f} and {ratio[1]:.2f}, since runs that are lost keep an overlap "
        f"of one sign that grows sharp too (at N = {large}, R = {two.mean():.2f} with a standard deviation "
        f"of {two.std(ddof=1):.2f})."
    ]


def _lost(measured: CampaignResult, sizes: list[Task], first: theory.Transition) -> list[str]:
    """Over which η runs are lost at each size."""
    middle = 0.5 * (first.below.R + first.above.R)
    found = []
    for n in sorted({t.n_features for t in sizes}):
        mine = sorted((t for t in sizes if t.n_features == n), key=lambda t: t.ensemble.eta)
        etas = np.array([t.ensemble.eta for t in mine])
        count = np.array([measured[t].R.count for t in mine])
        lost = [float(np.mean(np.array(measured[t].R.values) < middle)) for t in mine]
        rising = isotonic_regression(lost, weights=count).x  # what noise makes fall is made level
        tenth, half = (_passed(etas, rising, share) for share in (0.1, 0.5))
        if half > tenth:
            found.append((n, tenth, half))
    if len(found) < 3:
        return []
    n, tenths, halves = np.array(found).T
    power = -float(np.polyfit(np.log(n), np.log(halves - tenths), 1)[0])
    early = ", ".join(f"{x:.2f} (N = {size:g})" for size, x in zip(n, tenths, strict=True))
    late = ", ".join(f"{x:.2f}" for x in halves)
    return [
        f"A run is lost if it ends with R < {middle:.2f}, half way between the two solutions. A tenth of the "
        f"runs are lost at η = {early}; half of them at {late}. The distance of the two falls as "
        f"N^(-{power:.2f})."
    ]


def _law(laws: list[tuple[FiniteSizeScaling, Comparison | None]]) -> list[str]:
    """Which line the onsets follow, and what that leaves of the paper's."""
    if len(laws) < 2 or any(c is None or not np.isfinite(found.misfit) for found, c in laws):
        return []
    (paper, _), (root, compared) = laws
    assert compared is not None
    if root.misfit >= paper.misfit:
        return []
    ends = [found.eta - compared.value for found in (root, paper)]
    words = [f"{abs(off):.2f} {'above' if off > 0.0 else 'below'}" for off in ends]
    return [
        "The onset is where the width of the transition begins. The sizes follow the line in N^(-1/2) (χ² "
        f"{root.misfit:.2g} per degree of freedom), not the paper's in 1/N ({paper.misfit:.2g}); the former "
        f"ends {words[0]} the exact transition, the latter {words[1]}. From these sizes an onset is "
        "extrapolated to no better than that, whatever its interval; the peak of the variance, which hardly "
        "moves with N, is the better measure."
    ]


def _passed(etas: Array, lost: Array, share: float) -> float:
    """η at which this share of the runs is lost, interpolated; NaN if it never is."""
    k = int(np.argmax(lost >= share))
    if k == 0:
        return float("nan")
    part = (share - lost[k - 1]) / (lost[k] - lost[k - 1])
    return float(etas[k - 1] + part * (etas[k] - etas[k - 1]))


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
