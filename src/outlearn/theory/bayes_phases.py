"""Where the Bayes-optimal solution changes with the number of examples: thresholds and the hard phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from outlearn.exceptions import ParameterError
from outlearn.model.checks import chemical_potential, is_positive, number, numbers, positive
from outlearn.theory.bayes_averages import log_average
from outlearn.theory.bayes_roots import (
    SCAN,
    free_energy_gap,
    log_alpha_of,
    roots_of,
    solve_group,
    spinodals,
)

__all__ = ["BayesThresholds", "bound", "hard_phase", "hard_phase_onset", "thresholds"]

_ETAS = "numbers below +inf (-inf: no outliers)"


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
    found = [solve_group(np.log(alpha), float(x), gamma, SCAN) for x in eta]
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


def _expit(t: float) -> float:
    return 1.0 / (1.0 + math.exp(-t))
