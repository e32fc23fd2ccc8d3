"""Proximal operators that cannot miss: the sigmoid's by a monotone iteration, any other by bracketing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit, vectorize
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import ParameterError

__all__ = ["proximal", "proximal_by_search", "sigmoid_prox", "sigmoid_prox_scalar"]


# coefficients of t - tanh t = t^3/3 - 2t^5/15 + ..., exact to rounding for |t| < 0.5
_EXCESS = (
    1.0 / 3.0,
    -2.0 / 15.0,
    17.0 / 315.0,
    -62.0 / 2835.0,
    1382.0 / 155925.0,
    -21844.0 / 6081075.0,
    929569.0 / 638512875.0,
    -6404582.0 / 10854718875.0,
    443861162.0 / 1856156927625.0,
    -18888466084.0 / 194896477400625.0,
    113927491862.0 / 2900518163668125.0,
)


@njit(cache=True, nogil=True)
def _excess(t: float) -> float:
    """t - tanh t without cancellation."""
    if abs(t) > 0.35:
        return t - math.tanh(t)
    total = 0.0
    for k in range(len(_EXCESS) - 1, -1, -1):
        total = total * t * t + _EXCESS[k]
    return total * t * t * t


@njit(cache=True, nogil=True)
def sigmoid_prox_scalar(a: float, b: float) -> float:
    """Global maximiser s of softplus(s) - (s-a)²/(2b), for numba callers; see :func:`sigmoid_prox`."""
    delta = a + 0.5 * b
    sign = 1.0
    if delta < 0.0:
        delta, sign = -delta, -1.0
    # On s >= 0 the function (1 - b/4) s + (b/2)(s/2 - tanh(s/2)) - delta is convex, so Newton started right
    # of its largest root falls onto it monotonically; the reflection above makes that root the global one.
    s = delta + 0.5 * b
    if b == 0.0:
        return a
    slope_0 = 1.0 - 0.25 * b
    for _ in range(200):
        t = 0.5 * s
        th = math.tanh(t)
        value = slope_0 * s + 0.5 * b * _excess(t) - delta if s < 1.0 else s - 0.5 * b * th - delta
        slope = 1.0 - 0.25 * b * (1.0 - th) * (1.0 + th)
        if value <= 0.0 or slope <= 0.0:
            break
        step = value / slope
        s -= step
        if s <= 0.0:
            s = 0.0
            break
        if step <= 4e-16 * s:
            break
    return sign * s


@vectorize(["float64(float64, float64)"], cache=True)
def _sigmoid_prox(a: float, b: float) -> float:
    return sigmoid_prox_scalar(a, b)


def sigmoid_prox(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Global maximiser s of ln(1+e^s) - (s-a)²/(2b): the right root of s = a + b σ(s), for every b >= 0.

    For b > 4 there are up to three roots; the global one jumps at a = -b/2, about which the problem is
    symmetric (s -> -s, a -> -a - b). At the jump itself the upper root is returned.

    >>> s = sigmoid_prox([-4.1, -3.9], 8.0)
    >>> s.round(6)
    array([-3.948676,  3.948676])
    """
    field, width = _finite("a", a), _finite("b", b)
    if not (width >= 0.0).all():
        raise ParameterError("b", b, "finite numbers >= 0")
    return _sigmoid_prox(field, width)


def proximal(
    derivative: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    w: ArrayLike,
    step: float,
    *,
    max_doublings: int = 200,
) -> NDArray[np.float64]:
    """Minimiser u of a convex loss(u) + (u-w)²/(2 step), from the loss's derivative alone.

    ``derivative(u) + (u-w)/step`` increases, so its root is bracketed by doubling outward from w and halved
    until neighbouring floats are reached: no step length, no failure. A kink of the loss is handled: the
    bracket closes on it.

    >>> proximal(np.sign, [-3.0, 0.5, 2.0], step=1.0)
    array([-2.,  0.,  1.])
    """
    target = _finite("w", w)
    _positive_step(step)

    def slope(u: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(derivative(u), dtype=np.float64) * step + (u - target)

    reach = np.maximum(np.abs(slope(target)), 1e-300)
    low, high = target - reach, target + reach
    for _ in range(max_doublings):
        too_high, too_low = slope(low) > 0.0, slope(high) < 0.0
        if not (too_high.any() or too_low.any()):
            break
        reach = 2.0 * reach
        low, high = np.where(too_high, target - reach, low), np.where(too_low, target + reach, high)
    for _ in range(200):
        middle = 0.5 * (low + high)
        moved = (middle > low) & (middle < high)
        if not moved.any():
            break
        positive = slope(middle) > 0.0
        high = np.where(moved & positive, middle, high)
        low = np.where(moved & ~positive, middle, low)
    exact = np.abs(slope(low)) <= np.abs(slope(high))
    u = np.where(exact, low, high)
    # a kink of the loss at a round number is met exactly, not to within a float
    snapped = np.round(u, 12)
    return np.where((snapped >= low) & (snapped <= high), snapped, u)[()]


def proximal_by_search(
    loss: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    w: ArrayLike,
    step: float,
    *,
    reach: float,
    points: int = 513,
    rounds: int = 12,
) -> NDArray[np.float64]:
    """Global minimiser u of any loss(u) + (u-w)²/(2 step) within ``reach`` of w, by repeated grid search.

    For losses that are not convex, and as the referee for proximal operators written by hand. Golden-section
    like searches find a minimum to about the square root of rounding; so does this.

    >>> wells = lambda u: np.minimum((u - 1) ** 2, (u + 1) ** 2 + 0.1)
    >>> proximal_by_search(wells, [-0.2, 0.2], step=2.0, reach=5.0).round(6)
    array([-0.84,  0.84])
    """
    target = np.atleast_1d(_finite("w", w))
    _positive_step(step)
    grid = np.linspace(-1.0, 1.0, points)
    center, width = target.copy(), np.full(target.shape, float(reach))
    for _ in range(rounds):
        u = center[..., None] + width[..., None] * grid
        value = np.asarray(loss(u)) + (u - target[..., None]) ** 2 / (2.0 * step)
        best = np.argmin(value, axis=-1)
        center = np.take_along_axis(u, best[..., None], axis=-1)[..., 0]
        width = width * (4.0 / (points - 1))
    return center.reshape(np.shape(w))[()]


def _finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        x = np.array(np.nan)
    if not np.isfinite(x).all():
        raise ParameterError(name, values, "finite numbers")
    return x


def _positive_step(step: float) -> None:
    if _finite("step", step).ndim or not step > 0.0:
        raise ParameterError("step", step, "a finite number > 0")
