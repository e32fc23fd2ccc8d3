"""Soft selection: the MAP estimate of J, each example weighed by its probability of being informative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from outlearn.model import Ensemble
from outlearn.model.checks import choice
from outlearn.numerics import Status, gaussian_average
from outlearn.theory.hebb import Hebb
from outlearn.theory.limit import Limit
from outlearn.theory.printed import PrintedSoftSystem
from outlearn.theory.selection import SelectionSystem
from outlearn.theory.selection_averages import EXACT_SOFT

__all__ = ["SoftSelection", "SoftSystem"]


class SoftSystem(SelectionSystem):
    """``L(a; b) = max_s [ ln(1+e^s) - (s-a)²/(2b) ]``: the exact envelope of the loss of Eq. energy."""

    rule = EXACT_SOFT


@dataclass(frozen=True, slots=True)
class SoftSelection:
    """Soft selection of examples, the minimum of Eq. energy at zero temperature.

    ``equations="exact"`` takes the Moreau envelope of the loss for every b = γ̃² z/γ; ``"printed"`` the
    integrals I_1..I_7 of appendix A, which are its expansion for small b and do not exist for b >= 4.

    >>> from outlearn import theory
    >>> theory.solve(theory.SoftSelection(), Ensemble(eta=0.0, gamma=10.0), alpha=1)
    SaddlePoint(SoftSelection(equations='exact'), alpha=1, eta=0, gamma=10, only: R=0.792738, Q=0.772605,
    z=0.167944, f=-2.66761, Phi=0.142184, stable, CONVERGED)
    """

    equations: Literal["exact", "printed"] = "exact"

    def __post_init__(self) -> None:
        choice("equations", self.equations, ("exact", "printed"))

    def system(self) -> SelectionSystem:
        """The saddle-point equations."""
        return SoftSystem() if self.equations == "exact" else PrintedSoftSystem()

    def limit(self, ensemble: Ensemble) -> Limit:
        """alpha -> infinity: z alpha -> zeta and b -> 0, so R minimises the expected loss of J = R B.

        With ``a = -g R²/2 - eta + g V R + g R x/sqrt(gamma)``, R_inf solves ``R = zeta p_1 g <sigma>_{V=1}``
        and ``c = zeta² (g²/gamma) <sigma²>``, ``1/zeta = g (<sigma> - <x sigma>/(R sqrt(gamma)))``. A matched
        learner has R_inf = 1 and ``c = 1/(gamma p_1 <sigma>_{V=1})``. Printed and exact equations agree here.
        """
        if ensemble.eta_tilde == -math.inf:
            reference = Hebb().limit(ensemble)
            return Limit(
                learner=self,
                ensemble=ensemble,
                R_inf=reference.R_inf,
                c=reference.c,
                residual=reference.residual,
                status=reference.status,
            )
        return _limit(self, ensemble)


def _limit(learner: SoftSelection, e: Ensemble) -> Limit:
    g, eta, gamma = e.gamma_tilde, e.eta_tilde, e.gamma
    share = (e.outlier_fraction, e.informative_fraction)

    def averages(R: float) -> np.ndarray:
        """<sigma>, <x sigma>, <sigma²>, <softplus> over both kinds, then <sigma> of the informative."""
        total = np.zeros(5)
        sd = g * R / math.sqrt(gamma)
        for V in (0, 1):
            m = -0.5 * g * R * R - eta + g * V * R

            def integrand(x: np.ndarray, m: float = m) -> np.ndarray:
                s = expit(m + sd * x)
                return np.stack([s, x * s, s * s, -log_expit(-(m + sd * x))])

            steps = np.array([-40.0, -18.0, -8.0, -3.0, 0.0, 3.0, 8.0, 18.0, 40.0])
            value = gaussian_average(integrand, (steps - m) / sd).value
            total[:4] += share[V] * value
            if V == 1:
                total[4] = value[0]
        return total

    def response(R: float) -> tuple[float, float, float]:
        a = averages(R)
        inverse = g * (a[0] - a[1] / (R * math.sqrt(gamma)))
        return share[1] * g * a[4] - R * inverse, inverse, a[2]

    grid = np.geomspace(1e-6, 50.0, 161)
    grid = np.unique(np.append(grid, [0.5, 0.999, 1.001, 2.0]))
    values = np.array([response(R)[0] for R in grid])
    # the expected loss falls where the response is positive: its minima are the downward crossings
    crossings = np.flatnonzero((values[:-1] > 0.0) & (values[1:] <= 0.0))
    roots = [
        brentq(lambda R: response(R)[0], grid[i], grid[i + 1], xtol=1e-15, rtol=1e-14) for i in crossings
    ]
    if not roots:
        return Limit(
            learner=learner, ensemble=e, R_inf=0.0, c=math.inf, residual=math.inf, status=Status.NO_SOLUTION
        )
    energies = [-float(averages(R)[3]) for R in roots]
    R = roots[int(np.argmin(energies))]
    residual, inverse, square = response(R)
    return Limit(
        learner=learner,
        ensemble=e,
        R_inf=float(R),
        c=float(g * g / gamma * square / inverse**2),
        energy=min(energies),
        residual=abs(residual / (R * inverse)),
        status=Status.CONVERGED if abs(residual / (R * inverse)) < 1e-10 else Status.ROUNDING_FLOOR,
    )
