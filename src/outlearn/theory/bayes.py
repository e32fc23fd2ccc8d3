"""The bound that no learner beats: the one equation of the Bayes-optimal posterior mean, and all its roots.

With t = logit q the saddle point of the matched posterior (β = 1) reads

    t - ln S(γ q) = ln(α γ p₁),      S(v) = ⟨σ(v/2 - η + √v x)⟩,                (B1)

so that α is an explicit function of the root. Its extrema, 1 = γ q (1 - q) S'(γq)/S(γq), are the spinodals;
between two of them there is at most one root, and none is missed. Derivations: docs/theory/bayes.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.model.checks import chemical_potential, is_positive, number, numbers, positive
from outlearn.numerics.status import Status
from outlearn.theory.bayes_averages import log_average, softplus
from outlearn.theory.limit import Limit
from outlearn.theory.system import Points, System

__all__ = [
    "BayesOptimal",
    "BayesSystem",
    "BayesThresholds",
    "bound",
    "hard_phase",
    "hard_phase_onset",
    "thresholds",
]

_SCAN = 800  # points of the scan for spinodals; each of them is then refined
_ETAS = "numbers below +inf (-inf: no outliers)"
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
    return tuple(float(t) for t in spinodals_of(eta, gamma, _SCAN))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesThresholds:
    """The three sample ratios at which the Bayes-optimal solution changes, at one (η, γ).

    Below ``appears`` only the uninformative solution exists, above ``algorithmic`` only the informative one.
    Between them both do; from ``information_theoretic`` on the informative one is the posterior's, but
    message passing from an uninformative start reaches it only beyond ``algorithmic``: the hard phase lies
    between.

    Attributes
    ----------
    appears, information_theoretic, algorithmic : float
        Values of α.
    q_appears, q_algorithmic : float
        The overlap at the two spinodals.
    q_low, q_high : float
        The two coexisting overlaps at the information-theoretic threshold.
    error : float
        Estimated relative error of the three values.
    """

    eta: float
    gamma: float
    appears: float
    information_theoretic: float
    algorithmic: float
    q_appears: float
    q_algorithmic: float
    q_low: float
    q_high: float
    error: float

    def to_dict(self) -> dict[str, float]:
        """Return all fields as plain numbers."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return (
            f"BayesThresholds(eta={self.eta:g}, gamma={self.gamma:g}: informative solution appears at alpha="
            f"{self.appears:.6g}, is optimal from {self.information_theoretic:.6g}, "
            f"is reached by message passing from {self.algorithmic:.6g})"
        )


def thresholds(eta: float, gamma: float) -> BayesThresholds | None:
    """Find the first-order and the two spinodal sample ratios; None where there is no hard phase at any α.

    >>> print(thresholds(5.0, 10.0))
    BayesThresholds(eta=5, gamma=10: informative solution appears at alpha=76.7621, ...
    >>> thresholds(4.0, 10.0) is None
    True
    """
    eta, gamma = chemical_potential("eta", eta), positive("gamma", gamma)
    folds = spinodals(eta, gamma)
    if not folds:
        return None
    if len(folds) != 2:  # never seen in the whole range of parameters; say so rather than mislead
        raise ParameterError("(eta, gamma)", (eta, gamma), "parameters with at most two spinodals")
    t_algorithmic, t_appears = folds  # ln α rises to its maximum, falls to its minimum, rises again
    high = log_alpha_of(t_algorithmic, eta, gamma, 0.0)
    low = log_alpha_of(t_appears, eta, gamma, 0.0)
    ends = np.array(folds)

    def gap(log_alpha: float) -> float:
        ts = roots_of(log_alpha, eta, gamma, ends)
        if ts.size < 3:
            return math.copysign(1.0, 0.5 * (low + high) - log_alpha)
        return free_energy_gap(float(ts[0]), float(ts[-1]), math.exp(log_alpha), eta, gamma)

    width = high - low
    middle = 0.5 * (low + high)
    if width > 1e-11:
        middle = brentq(gap, low + 1e-3 * width, high - 1e-3 * width, xtol=1e-15, rtol=1e-14)
    ts = roots_of(middle, eta, gamma, ends)
    shifted = [log_alpha_of(t, eta, gamma, 0.5) - log_alpha_of(t, eta, gamma, 0.0) for t in (*folds, *ts)]
    return BayesThresholds(
        eta=eta,
        gamma=gamma,
        appears=math.exp(low),
        information_theoretic=math.exp(middle),
        algorithmic=math.exp(high),
        q_appears=_expit(t_appears),
        q_algorithmic=_expit(t_algorithmic),
        q_low=_expit(float(ts[0])),
        q_high=_expit(float(ts[-1])),
        error=max(1e-14, max(abs(s) for s in shifted)),
    )


def hard_phase_onset(gamma: float) -> float:
    """Return the η beyond which a hard phase exists at some α; inf for γ <= 4, where none ever does.

    ``gamma=math.inf`` gives the limit of well separated clusters, below which no γ has a hard phase.

    >>> round(hard_phase_onset(10.0), 4)
    4.0628
    >>> hard_phase_onset(4.0)
    inf
    """
    gamma = number("gamma", gamma, "a number > 0", lambda x: x > 0.0)
    if gamma <= 4.0:
        return math.inf

    def largest(eta: float) -> float:
        # v = γq stays finite as γ grows; beyond v = 300 the slope S' is negligible at the onset
        us = np.linspace(-1.0, math.log(min(gamma, 300.0)), 200)
        i = int(np.clip(np.argmax([_replicon(u, eta, gamma) for u in us]), 1, us.size - 2))
        best = minimize_scalar(
            lambda u: -_replicon(u, eta, gamma),
            bounds=(us[i - 1], us[i + 1]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return float(-best.fun) - 1.0

    high = 5.0
    while largest(high) < 0.0:
        high *= 1.5
        if high > 1e3:
            return math.inf
    return float(brentq(largest, 0.0, high, xtol=1e-12))


def _replicon(u: float, eta: float, gamma: float) -> float:
    """``at_eigenvalue_of`` as a function of ln v, which has a limit for infinite γ."""
    v = math.exp(u)
    slope = log_average(1, 0.5 * v - eta, v, 0.0) - log_average(0, 0.5 * v - eta, v, 0.0)
    return (1.0 - v / gamma) * v * math.exp(slope)


def hard_phase(etas: ArrayLike, gamma: float) -> Any:
    """Tabulate the thresholds over η at one γ: a DataFrame, NaN where there is no hard phase.

    >>> hard_phase([4.0, 5.0, 6.0], 10.0)[["eta", "appears", "information_theoretic", "algorithmic"]].round(3)
       eta  appears  information_theoretic  algorithmic
    0  4.0      NaN                    NaN          NaN
    ...
    """
    import pandas as pd

    rows = []
    for eta in numbers("etas", etas, _ETAS, lambda x: x < math.inf):
        found = thresholds(float(eta), gamma)
        missing = dict.fromkeys(BayesThresholds.__slots__, math.nan) | {"eta": eta, "gamma": gamma}
        rows.append(missing if found is None else found.to_dict())
    return pd.DataFrame(rows)


def bound(alphas: ArrayLike, etas: ArrayLike, gamma: float) -> dict[str, NDArray[np.float64]]:
    """Solve a whole (α, η) diagram at once: q that message passing reaches, and q of the optimum.

    Returns arrays of shape (len(etas), len(alphas)): ``reached`` (smallest root), ``optimal`` (root of
    lowest free energy), ``n_roots``; and per η the three thresholds ``appears``, ``information_theoretic``,
    ``algorithmic``.

    >>> d = bound([10.0, 20.0, 40.0], [0.0, 4.0], 10.0)
    >>> d["optimal"].round(4)
    array([[0.9786, 0.9892, 0.9946],
           [0.0487, 0.541 , 0.7778]])
    """
    alpha = numbers("alphas", alphas, "finite numbers > 0", is_positive)
    eta = numbers("etas", etas, _ETAS, lambda x: x < math.inf)
    gamma = positive("gamma", gamma)
    found = [_solve_group(np.log(alpha), float(x), gamma, _SCAN) for x in eta]
    low, high = np.array([ts[:, 0] for ts in found]), np.array([ts[:, -1] for ts in found])
    count = np.array([1 + (np.diff(ts, axis=1) > 0.0).sum(axis=1) for ts in found])
    lines = [thresholds(float(x), gamma) for x in eta]
    critical = np.array([np.nan if line is None else line.information_theoretic for line in lines])
    best = np.where(alpha[None, :] >= critical[:, None], high, low)
    return {
        "reached": 1.0 / (1.0 + np.exp(-low)),
        "optimal": 1.0 / (1.0 + np.exp(-best)),
        "n_roots": count,
        "appears": np.array([np.nan if line is None else line.appears for line in lines]),
        "information_theoretic": critical,
        "algorithmic": np.array([np.nan if line is None else line.algorithmic for line in lines]),
    }


@njit(cache=True, nogil=True)
def _solve_group(log_alphas: NDArray[np.float64], eta: float, gamma: float, scan: int) -> NDArray[np.float64]:
    """Roots of many α at one (η, γ): rows of three logits, the last one repeated where there are fewer."""
    folds = spinodals_of(eta, gamma, scan)
    out = np.empty((log_alphas.size, folds.size + 1))
    for j in range(log_alphas.size):
        ts = roots_of(log_alphas[j], eta, gamma, folds)
        for i in range(folds.size + 1):
            out[j, i] = ts[min(i, ts.size - 1)]
    return out


@njit(cache=True, nogil=True)
def _values(
    ts: NDArray[np.float64],
    alpha: NDArray[np.float64],
    eta: NDArray[np.float64],
    gamma: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Per point: residual, Jacobian, free energy, AT number, error of logit q."""
    out = np.full((5, ts.size), np.nan)
    for k in range(ts.size):
        if abs(ts[k]) < 700.0:
            level = log_alpha_of(ts[k], eta[k], gamma[k], 0.0)
            out[0, k] = level - math.log(alpha[k])
            out[3, k] = at_eigenvalue_of(ts[k], eta[k], gamma[k])
            out[1, k] = 1.0 - out[3, k]
            out[2, k] = free_energy(ts[k], alpha[k], eta[k], gamma[k])
            moved = abs(log_alpha_of(ts[k], eta[k], gamma[k], 0.5) - level)
            out[4, k] = moved / max(abs(out[1, k]), 1e-300)
    return out


class BayesSystem(System):
    """Eq. B1 as a system of one unknown, t = logit q; R = Q = q."""

    names: ClassVar[tuple[str, ...]] = ("logit q",)
    orientation: ClassVar[int] = 1
    lowest: ClassVar[float] = -690.0

    @staticmethod
    def _run(points: Points, v: NDArray[np.float64]) -> NDArray[np.float64]:
        _refuse_mismatch(points)
        ts = np.ascontiguousarray(v, dtype=np.float64)[:, 0]
        return _values(ts, points.alpha, points.eta, points.gamma)

    def evaluate(
        self, points: Points, v: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ln α(t) - ln α, and its slope 1 - γ q (1-q) S'/S."""
        out = self._run(points, v)
        return out[0][:, None], out[1][:, None, None]

    def free_energy(self, points: Points, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(q) of Eq. B3."""
        return self._run(points, v)[2]

    def at_eigenvalue(self, points: Points, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """The replicon number; on the Nishimori line it is also the slope of an AMP iteration in logit q."""
        return self._run(points, v)[3]

    def quadrature_error(self, points: Points, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Change of q when every node of the trapezoidal rule moves by half a step."""
        t = v[:, 0]
        return self._run(points, v)[4] / (2.0 + np.exp(-t) + np.exp(t))

    def order_parameters(self, points: Points, v: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """R = Q = q of the posterior mean, and 1 - q without cancellation."""
        q = expit(v[:, 0])
        return {"R": q, "Q": q, "q": q, "1-q": expit(-v[:, 0])}

    def starts(self, points: Points) -> NDArray[np.float64]:
        """The roots themselves: they are bracketed, so none is missed."""
        _refuse_mismatch(points)
        pairs, member = np.unique(np.stack([points.eta, points.gamma], 1), axis=0, return_inverse=True)
        out = np.full((len(points), 3), np.nan)
        for i, (eta, gamma) in enumerate(pairs):
            rows = np.flatnonzero(member.ravel() == i)
            found = _solve_group(np.log(points.alpha[rows]), eta, gamma, _SCAN)
            for j in range(3):
                out[rows, j] = found[:, min(j, found.shape[1] - 1)]
        return np.ascontiguousarray(out.T)[:, :, None]


@dataclass(frozen=True, slots=True)
class BayesOptimal:
    """The posterior mean of the centre: the estimate with the smallest mean squared error (Eq. poster).

    Its R = Q = q solve Eq. B1. It is defined for a learner that knows η and γ; a mismatched ensemble is
    refused.

    >>> from outlearn.model import Ensemble
    >>> system, points = BayesOptimal().system(), Points.of(Ensemble(0.0, 10.0), 1.0)
    >>> system.order_parameters(points, system.starts(points)[0])["q"].round(5)
    array([0.81608])
    """

    def system(self) -> BayesSystem:
        """Give the saddle-point system."""
        return BayesSystem()

    def limit(self, ensemble: Ensemble) -> Limit:
        """R_inf = 1 and 1 - q ~ c/α with c = 1/(γ p₁ S(γ)), as for matched soft selection."""
        _refuse_mismatch(Points.of(ensemble, 1.0))
        eta, gamma = ensemble.eta, ensemble.gamma
        log_c = -math.log(gamma) + softplus(eta) - log_average(0, 0.5 * gamma - eta, gamma, 0.0)
        return Limit(
            learner=self,
            ensemble=ensemble,
            R_inf=1.0,
            c=math.exp(log_c),
            energy=free_energy(800.0, 1.0, eta, gamma) - free_energy(800.0, 0.0, eta, gamma),
            residual=0.0,
            status=Status.EXPLICIT,
        )


def _refuse_mismatch(points: Points) -> None:
    for belief, truth, name in (
        (points.gamma_tilde, points.gamma, "gamma_tilde"),
        (points.eta_tilde, points.eta, "eta_tilde"),
    ):
        wrong = np.flatnonzero(belief != truth)
        if wrong.size:
            raise ParameterError(
                name,
                float(belief[wrong[0]]),
                "the truth: BayesOptimal is the posterior mean under the true parameters "
                "(use Gibbs or SoftSelection for a learner that is wrong about them)",
            )


def _expit(t: float) -> float:
    return 1.0 / (1.0 + math.exp(-t))
