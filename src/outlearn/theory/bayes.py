"""The bound that no learner beats: the Bayes-optimal posterior mean as a learner.

Its one equation and the roots are in ``bayes_roots``, its thresholds in ``bayes_phases``, its averages in
``bayes_averages``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.numerics.status import Status
from outlearn.theory.bayes_averages import log_average, softplus
from outlearn.theory.bayes_phases import (
    BayesThresholds,
    bound,
    hard_phase,
    hard_phase_onset,
    thresholds,
)
from outlearn.theory.bayes_roots import (
    SCAN,
    at_eigenvalue_of,
    free_energy,
    log_alpha_of,
    solve_group,
)
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
            found = solve_group(np.log(points.alpha[rows]), eta, gamma, SCAN)
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
