"""Gaussian averages of the Bayes-optimal theory: ⟨F(m + √v x)⟩ with F a logistic function, to full precision.

Each integrand e^(-x²/2) F(m + √v x) is log-concave and analytic in the strip |Im x| < π/√v. The trapezoidal
rule, centred on its maximum, therefore converges exponentially: with a contour shift d inside the strip its
relative error is at most 2 exp(d²/2 - 2πd/h), and the step h below makes that 1e-16.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import log_ndtr, logsumexp

from outlearn.numerics.gaussian import legendre_rule

__all__ = ["SIGMOID", "SIGMOID_SLOPE", "SIGMOID_SQUARE", "SOFTPLUS", "log_average", "log_average_wide"]

SIGMOID = 0  # σ(s)
SIGMOID_SLOPE = 1  # σ(s)(1 - σ(s))², the derivative of ⟨σ⟩ in v at m = v/2 - η
SOFTPLUS = 2  # ln(1 + e^s)
SIGMOID_SQUARE = 3  # σ(s)²

_REACH = 8.9  # e^(-x²/2) is below 1e-17 beyond
_LOG_EPS = 37.5  # -ln of the relative error that the step allows
_FAR = 40.0  # beyond ±40 every F here but SIGMOID_SLOPE is a power or an exponential to rounding
_ENDS = np.array([-_FAR, -18.0, -8.0, -3.0, 0.0, 3.0, 8.0, 18.0, _FAR])


@njit(cache=True, nogil=True)
def log_softplus(s: float) -> float:
    """Return ln ln(1 + e^s)."""
    if s > 0.0:
        return math.log(s + math.log1p(math.exp(-s)))
    if s < -30.0:
        return s - 0.5 * math.exp(s)
    return math.log(math.log1p(math.exp(s)))


@njit(cache=True, nogil=True)
def softplus(s: float) -> float:
    """Return ln(1 + e^s)."""
    if s > 0.0:
        return s + math.log1p(math.exp(-s))
    return math.log1p(math.exp(s))


@njit(cache=True, nogil=True)
def _log_integrand(kind: int, s: float) -> float:
    if kind == 0:
        return -softplus(-s)
    if kind == 1:
        return -softplus(-s) - 2.0 * softplus(s)
    if kind == 3:
        return -2.0 * softplus(-s)
    return log_softplus(s)


@njit(cache=True, nogil=True)
def _log_slope(kind: int, s: float) -> float:
    """Derivative of ``_log_integrand`` in s; it falls with s in every case."""
    rejected = 1.0 / (1.0 + math.exp(s)) if s < 700.0 else 0.0
    if kind == 0:
        return rejected
    if kind == 1:
        return 3.0 * rejected - 2.0
    if kind == 3:
        return 2.0 * rejected
    if s < -30.0:
        return 1.0
    return (1.0 - rejected) / softplus(s)


@njit(cache=True, nogil=True)
def log_average(kind: int, mean: float, variance: float, shift: float) -> float:
    """Return ln⟨F(mean + √variance x)⟩; ``shift`` in [0, 1) moves the nodes, for error estimates.

    >>> float(log_average(SIGMOID, 0.0, 3.0, 0.0)) == math.log(0.5)
    True
    """
    if variance <= 0.0 or mean == math.inf:  # at η = -infinity there is no doubt about any example
        return _log_integrand(kind, mean)
    spread = math.sqrt(variance)
    low = -2.0 * spread if kind == 1 else 0.0
    high = 2.0 * spread if kind == 3 else spread
    while high - low > 0.05:
        middle = 0.5 * (low + high)
        if spread * _log_slope(kind, mean + spread * middle) > middle:
            low = middle
        else:
            high = middle
    peak = 0.5 * (low + high)
    strip = math.pi / spread
    widest = math.sqrt(2.0 * _LOG_EPS)
    depth = strip if strip < widest else widest
    step = 2.0 * math.pi * depth / (_LOG_EPS + 0.5 * depth * depth)
    nodes = int(_REACH / step) + 1
    top = -0.5 * peak * peak + _log_integrand(kind, mean + spread * peak)
    total = 0.0
    for i in range(-nodes, nodes + 1):
        x = peak + (i + shift) * step
        total += math.exp(-0.5 * x * x + _log_integrand(kind, mean + spread * x) - top)
    return top + math.log(total * step) - 0.5 * math.log(2.0 * math.pi)


def log_average_wide(kind: int, mean: float, spread: float) -> float:
    """Return ln⟨F(mean + spread x)⟩ for a spread of any size, at a cost that does not grow with it.

    The trapezoidal rule needs nodes in proportion to the spread; here F is integrated by panels where it
    turns, and both tails are error functions. Not for SIGMOID_SLOPE.

    >>> abs(log_average_wide(SIGMOID, -30.0, 20.0) / log_average(SIGMOID, -30.0, 400.0, 0.0) - 1.0) < 1e-13
    True
    """
    nodes, weights = legendre_rule(32)
    half = 0.5 * np.diff(_ENDS)[:, None]
    s = (_ENDS[:-1, None] + half * (1.0 + nodes)).ravel()
    log_f = np.array([_log_integrand(kind, x) for x in s])
    scale = math.log(spread) + 0.5 * math.log(2.0 * math.pi)
    middle = np.log((half * weights).ravel()) + log_f - 0.5 * ((s - mean) / spread) ** 2 - scale
    edge = (_FAR - mean) / spread
    above = [log_ndtr(-edge)]
    if kind == SOFTPLUS:  # <s> over s > 40 = 40 P(s > 40) + spread <(x - edge)_+>
        above = [math.log(_FAR) + above[0], math.log(spread) + _log_excess(edge)]
    power = 2.0 if kind == SIGMOID_SQUARE else 1.0
    below = power * (mean + 0.5 * power * spread**2) + log_ndtr((-_FAR - mean - power * spread**2) / spread)
    return float(logsumexp([*middle, *above, below]))


def _log_excess(t: float) -> float:
    """ln ⟨max(0, x - t)⟩ over a standard normal x."""
    if t < 4.0:
        density = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
        return math.log(density - t * math.exp(log_ndtr(-t)))
    rest = 0.0  # Laplace's continued fraction 1/(t + 2/(t + 3/(t + ...)))
    for k in range(60, 0, -1):
        rest = k / (t + rest)
    return -0.5 * t * t - 0.5 * math.log(2.0 * math.pi) + math.log(rest / (t + rest))
