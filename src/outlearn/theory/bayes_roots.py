"""The one equation of the Bayes-optimal posterior mean, and all its roots.

With t = logit q the saddle point of the matched posterior (β = 1) reads

    t - ln S(γ q) = ln(α γ p₁),      S(v) = ⟨σ(v/2 - η + √v x)⟩,                (B1)

so that α is an explicit function of the root. Its extrema, 1 = γ q (1 - q) S'(γq)/S(γq), are the spinodals;
between two of them there is at most one root, and none is missed. Derivations: docs/theory/bayes.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from outlearn.theory.bayes_averages import log_average, softplus

__all__ = [
    "at_eigenvalue_of",
    "free_energy",
    "free_energy_gap",
    "log_alpha_of",
    "roots",
    "roots_of",
    "solve_group",
    "spinodals",
    "spinodals_of",
]

SCAN = 800  # points of the scan for spinodals; each of them is then refined
_AREA_NODES, _AREA_WEIGHTS = np.polynomial.legendre.leggauss(96)


@njit(cache=True, nogil=True)
def log_alpha_of(t: float, eta: float, gamma: float, shift: float) -> float:
    """Return ln α for which logit q = t is a root (Eq. B1)."""
    v = gamma / (1.0 + math.exp(-t))
    return t - log_average(0, 0.5 * v - eta, v, shift) - math.log(gamma) + softplus(eta)


@njit(cache=True, nogil=True)
def at_eigenvalue_of(t: float, eta: float, gamma: float) -> float:
    """Return γ q (1-q) S'/S: the replicon eigenvalue, and the slope of ln(q/(1-q)) in one AMP iteration."""
    q, rest = 1.0 / (1.0 + math.exp(-t)), 1.0 / (1.0 + math.exp(t))
    v = gamma * q
    slope = log_average(1, 0.5 * v - eta, v, 0.0) - log_average(0, 0.5 * v - eta, v, 0.0)
    return gamma * q * rest * math.exp(slope)


@njit(cache=True, nogil=True)
def spinodals_of(eta: float, gamma: float, scan: int) -> NDArray[np.float64]:
    """Return every logit q at which ln α is stationary, in ascending order.

    S' <= S, so that a spinodal needs q (1 - q) γ >= 1: there is none for γ <= 4, and the scan has finite
    ends.
    """
    found = np.empty(64)
    n_found = 0
    if gamma <= 4.0 or eta == -math.inf:
        return found[:0].copy()
    end = 2.0 * math.acosh(0.5 * math.sqrt(gamma))
    ts = np.linspace(-end, end, scan)
    margin = np.empty(scan)
    for i in range(scan):
        margin[i] = 1.0 - at_eigenvalue_of(ts[i], eta, gamma)
    # A pair of spinodals closer than the grid shows as a minimum that dips below zero only between its
    # points.
    points = np.empty(3 * scan)
    values = np.empty(3 * scan)
    n = 0
    for i in range(scan):
        points[n], values[n] = ts[i], margin[i]
        n += 1
        if 0 < i < scan - 1 and 0.0 < margin[i] <= margin[i - 1] and margin[i] < margin[i + 1]:
            low, high = ts[i - 1], ts[i + 1]
            for _ in range(45):
                a, b = high - 0.6180339887498949 * (high - low), low + 0.6180339887498949 * (high - low)
                if at_eigenvalue_of(a, eta, gamma) > at_eigenvalue_of(b, eta, gamma):
                    high = b
                else:
                    low = a
            t = 0.5 * (low + high)
            value = 1.0 - at_eigenvalue_of(t, eta, gamma)
            if value < 0.0:
                if t < ts[i]:
                    points[n - 1], values[n - 1] = t, value
                    points[n], values[n] = ts[i], margin[i]
                else:
                    points[n], values[n] = t, value
                n += 1
    for i in range(n - 1):
        if (values[i] > 0.0) != (values[i + 1] > 0.0) and n_found < 64:
            low, high, sign = points[i], points[i + 1], values[i] > 0.0
            for _ in range(52):
                middle = 0.5 * (low + high)
                if (1.0 - at_eigenvalue_of(middle, eta, gamma) > 0.0) == sign:
                    low = middle
                else:
                    high = middle
            found[n_found] = 0.5 * (low + high)
            n_found += 1
    return found[:n_found].copy()


@njit(cache=True, nogil=True)
def _root_between(low: float, high: float, log_alpha: float, eta: float, gamma: float, rising: bool) -> float:
    """Newton's method kept inside a bracket on which ln α(t) is monotone."""
    t = 0.5 * (low + high)
    for _ in range(200):
        gap = log_alpha_of(t, eta, gamma, 0.0) - log_alpha
        if (gap > 0.0) == rising:
            high = t
        else:
            low = t
        slope = 1.0 - at_eigenvalue_of(t, eta, gamma)
        step = t - gap / slope if slope != 0.0 else low - 1.0
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - t) <= 4e-16 * (1.0 + abs(t)):
            return step
        t = step
    return t


@njit(cache=True, nogil=True)
def roots_of(
    log_alpha: float, eta: float, gamma: float, spinodals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return every root of Eq. B1 as logit q, in ascending order; S lies in [p₁, 1], which brackets them."""
    top = log_alpha + math.log(gamma) - softplus(eta)
    low, high = top - softplus(eta) - 1e-9, top + 1e-9
    found = np.empty(spinodals.size + 1)
    n_found = 0
    left = low
    for k in range(spinodals.size + 1):
        right = high if k == spinodals.size else min(max(spinodals[k], low), high)
        if right > left:
            at_left = log_alpha_of(left, eta, gamma, 0.0) - log_alpha
            at_right = log_alpha_of(right, eta, gamma, 0.0) - log_alpha
            if (at_left <= 0.0) != (at_right <= 0.0):
                found[n_found] = _root_between(left, right, log_alpha, eta, gamma, at_left <= 0.0)
                n_found += 1
        left = max(left, right)
    return found[:n_found].copy()


@lru_cache(maxsize=1024)
def spinodals(eta: float, gamma: float) -> tuple[float, ...]:
    """Return the logits q of all spinodals of (η, γ); they do not depend on α."""
    return tuple(float(t) for t in spinodals_of(eta, gamma, SCAN))


def roots(alpha: float, eta: float, gamma: float) -> NDArray[np.float64]:
    """Return all roots of the Bayes-optimal saddle point, as logit q in ascending order.

    >>> (1 / (1 + np.exp(-roots(20.0, 4.0, 10.0)))).round(5)
    array([0.54103])
    """
    return roots_of(math.log(alpha), eta, gamma, np.array(spinodals(eta, gamma)))


@njit(cache=True, nogil=True)
def free_energy(t: float, alpha: float, eta: float, gamma: float) -> float:
    """Free energy of the matched posterior at logit q = t, constants dropped (docs/theory/bayes.md, Eq. B3).

    >>> round(free_energy(float(roots(1.0, 0.0, 10.0)[0]), 1.0, 0.0, 10.0), 5)
    -1.7901
    """
    q, log_rest = 1.0 / (1.0 + math.exp(-t)), -softplus(t)
    v = gamma * q
    if eta == -math.inf:  # every weight is one; the infinite constant -eta is left out
        return -0.5 * log_rest - 0.5 * q - 0.5 * alpha * v
    outlier = math.exp(-softplus(-eta) + log_average(2, -eta - 0.5 * v, v, 0.0))
    informative = math.exp(-softplus(eta) + log_average(2, -eta + 0.5 * v, v, 0.0))
    return -0.5 * log_rest - 0.5 * q - alpha * (outlier + informative)


def free_energy_gap(t_low: float, t_high: float, alpha: float, eta: float, gamma: float) -> float:
    """Return f(t_high) - f(t_low) by the area under df/dq, without cancellation (Eq. B4)."""
    low, high = -softplus(-t_low), -softplus(-t_high)  # ln q
    u = 0.5 * (low + high) + 0.5 * (high - low) * _AREA_NODES
    v = gamma * np.exp(u)
    log_s = np.array([log_average(0, 0.5 * x - eta, x, 0.0) for x in v])
    gain = float(np.sum(_AREA_WEIGHTS * np.exp(math.log(alpha) - softplus(eta) + log_s + np.log(v))))
    entropy = softplus(t_high) - softplus(t_low) - (math.exp(high) - math.exp(low))
    return 0.5 * entropy - 0.25 * (high - low) * gain


@njit(cache=True, nogil=True)
def solve_group(log_alphas: NDArray[np.float64], eta: float, gamma: float, scan: int) -> NDArray[np.float64]:
    """Roots of many α at one (η, γ): rows of three logits, the last one repeated where there are fewer."""
    folds = spinodals_of(eta, gamma, scan)
    out = np.empty((log_alphas.size, folds.size + 1))
    for j in range(log_alphas.size):
        ts = roots_of(log_alphas[j], eta, gamma, folds)
        for i in range(folds.size + 1):
            out[j, i] = ts[min(i, ts.size - 1)]
    return out
