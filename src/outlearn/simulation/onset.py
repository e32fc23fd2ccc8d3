"""Where the transition is at one size: three estimators on the values of R over runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["binder_crossing", "broadening", "variance_peak"]

Array = NDArray[np.float64]
Samples = Sequence[Array]  # values of R, one array for each η
_PEAK = 4.0
_APART = 3.0
_RARE = 1.0 / 6.0


def broadening(etas: Array, samples: Samples) -> float:
    """Locate the onset as the paper does: the first η where the distribution of R is significantly broader.

    "Significantly": its standard deviation passes the geometric mean of what it is where all is quiet (the
    median over the lowest third of the η) and of what it is where either state is as likely (half the range
    of the means); interpolated in the logarithm. One peak is N^(-1/2) wide, two are N^0 apart, so that for
    large N the level lies above the one and below the other; a multiple of the quiet width is reached by the
    one peak alone, which grows with η at every N. NaN if the level is never reached, or the means differ by
    less than six times the quiet width.

    >>> quiet, wide = 0.9 + 0.01 * np.array([-1.0, 1.0]), np.array([0.0, 0.9])
    >>> round(broadening(np.arange(4.0), [quiet, quiet, wide, quiet - 0.9]), 2)
    1.45
    """
    widths = np.array([np.std(values, ddof=1) for values in samples])
    quiet, apart = np.median(widths[: max(1, len(widths) // 3)]), np.ptp([np.mean(v) for v in samples])
    level = np.sqrt(quiet * 0.5 * apart)
    above = np.flatnonzero(widths >= level)
    if not quiet > 0.0 or 0.5 * apart < _APART * quiet or not above.size or above[0] == 0:
        return float("nan")
    k = int(above[0])
    low, high = np.log(max(widths[k - 1], 1e-300)), np.log(widths[k])
    return float(etas[k - 1] + (np.log(level) - low) / (high - low) * (etas[k] - etas[k - 1]))


def variance_peak(etas: Array, samples: Samples) -> float:
    """Locate the largest variance of R over runs, by the parabola through the upper half of the peak.

    The highest point alone, or with its two neighbours, is where the noise happens to be largest; its
    bootstrap intervals are too narrow. NaN if the peak lies at an end of the η that were run, or is less than
    four times what the variance is where all is quiet (the median over the lowest third of the η).

    >>> spread = lambda v: np.array([-1.0, 1.0]) * v**0.5
    >>> variance_peak(np.array([0.0, 1.0, 2.0, 3.0]), [spread(1.0), spread(9.0), spread(10.0), spread(9.0)])
    2.0
    """
    variances = np.array([np.var(values) for values in samples])
    top = int(np.argmax(variances))
    quiet = np.median(variances[: max(1, len(variances) // 3)])
    if top in (0, len(etas) - 1) or not variances[top] >= _PEAK * quiet:
        return float("nan")
    below = np.flatnonzero(variances < 0.5 * variances[top])
    first = max((k + 1 for k in below if k < top), default=0)
    last = min((k - 1 for k in below if k > top), default=len(etas) - 1)
    part = slice(min(first, top - 1), max(last, top + 1) + 1)
    curvature, slope, _ = np.polyfit(etas[part] - etas[top], variances[part], 2)
    peak = float(etas[top] - 0.5 * slope / curvature) if curvature < 0.0 else float(etas[top])
    return float(np.clip(peak, etas[part][0], etas[part][-1]))


def binder_crossing(etas: Array, small: Samples, large: Samples) -> float:
    """Locate the crossing of the ratio <R²>²/<R⁴> of two sizes.

    It crosses where Binder's U = 1 - <R⁴>/(3 <R²>²) does, but is bounded: near 1 below the transition (the
    nearer, the larger the size), p where only a fraction p of the runs is informative, 1/3 for pure noise.
    The η beyond the first at which it is below 1/6 at both sizes are not looked at. Of the others, the split
    that separates the signs of the difference best is interpolated; NaN if there is none.

    >>> flat, broad = np.ones(4), np.array([-1.0, 0.0, 0.0, 1.0])
    >>> binder_crossing(np.array([0.0, 1.0]), [broad, flat], [flat, broad])
    0.5
    """
    first, second = (np.array([_ratio(values) for values in samples]) for samples in (small, large))
    rare = np.flatnonzero((first < _RARE) & (second < _RARE))
    difference = (second - first)[: rare[0] + 1 if rare.size else None]
    total = np.concatenate([[0.0], np.cumsum(difference)])
    k = int(np.argmax(2.0 * total - total[-1]))
    if k in (0, len(difference)) or not difference[k - 1] > 0.0 > difference[k]:
        return float("nan")
    part = difference[k - 1] / (difference[k - 1] - difference[k])
    return float(etas[k - 1] + part * (etas[k] - etas[k - 1]))


def _ratio(values: Array) -> float:
    fourth = np.mean(values**4)
    return float(np.mean(values**2) ** 2 / fourth) if fourth > 0.0 else 0.0
