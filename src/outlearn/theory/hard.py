"""Hard selection: the MAP estimate of the decision variables, each example kept or discarded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from outlearn.model import Ensemble
from outlearn.model.checks import choice
from outlearn.numerics import Status
from outlearn.theory.hebb import Hebb
from outlearn.theory.limit import Limit, downward_crossings, overlap_grid
from outlearn.theory.printed import PrintedHardSystem
from outlearn.theory.selection import HardSystem

__all__ = ["HardSelection", "HardSystem", "expected_gain"]


@dataclass(frozen=True, slots=True)
class HardSelection:
    """Hard selection of examples, the minimum of Eq. henergy at zero temperature.

    ``equations="exact"`` carries Q_hat in f_h and in the second moment; ``"printed"`` Q_hat/2 as appendix B.

    >>> from outlearn import theory
    >>> theory.solve(theory.HardSelection(), Ensemble(eta=0.0, gamma=10.0), alpha=5)
    SaddlePoint(HardSelection(equations='exact'), alpha=5, eta=0, gamma=10, only: R=0.977907, Q=0.999712,
    z=0.0418201, Q_hat=2.48214, f=-11.2814, Phi=0.0668198, not AT-stable, CONVERGED)
    """

    equations: Literal["exact", "printed"] = "exact"

    def __post_init__(self) -> None:
        choice("equations", self.equations, ("exact", "printed"))

    def system(self) -> HardSystem:
        """The saddle-point equations."""
        return HardSystem() if self.equations == "exact" else PrintedHardSystem()

    def limit(self, ensemble: Ensemble) -> Limit:
        """alpha -> infinity: R maximises the expected gain <max(0, a)> of J = R B.

        With ``t_V = (g R²/2 + eta - g V R) sqrt(gamma)/(g R)``, ``H_V = Phi_N(-t_V)``, Q_0 = sum_V p_V H_V,
        ``R (p_0 H_0 + p_1 H_1) = p_1 H_1 + (p_0 phi(t_0) + p_1 phi(t_1))/sqrt(gamma)``. The gain is positive
        for every finite eta: something is always learnt. Printed and exact equations have the same R_inf; the
        printed second moment halves c.
        """
        if ensemble.eta_tilde == -math.inf:
            reference = Hebb().limit(ensemble)
            return Limit(
                learner=self,
                ensemble=ensemble,
                R_inf=reference.R_inf,
                c=2.0 * self.system().rate * reference.c,
                residual=reference.residual,
                status=reference.status,
            )
        return _limit(self, ensemble)


def _terms(e: Ensemble, R: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds t_V, selected shares H_V and densities phi(t_V) at overlap R, for V = 0, 1."""
    g = e.gamma_tilde
    t = (0.5 * g * R * R + e.eta_tilde - g * R * np.array([0.0, 1.0])) * math.sqrt(e.gamma) / (g * R)
    return t, ndtr(-t), np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def expected_gain(e: Ensemble, R: float) -> float:
    """<max(0, a)> per example of a learner J = R B: minus the energy per example at alpha = infinity.

    >>> round(expected_gain(Ensemble(eta=0.5, gamma=0.2), 5.0), 3)
    0.144
    """
    t, chosen, density = _terms(e, R)
    share = np.array([e.outlier_fraction, e.informative_fraction])
    return float(share @ (e.gamma_tilde * R / math.sqrt(e.gamma) * (density - t * chosen)))


def _limit(learner: HardSelection, e: Ensemble) -> Limit:
    g, gamma = e.gamma_tilde, e.gamma
    share = np.array([e.outlier_fraction, e.informative_fraction])

    def slope(R: float) -> float:
        _, chosen, density = _terms(e, R)
        noise = float(share @ density) / math.sqrt(gamma)
        return float(share[1] * chosen[1] + noise - R * (share @ chosen))

    roots = downward_crossings(slope, overlap_grid(e))
    if not roots:
        return Limit(
            learner=learner, ensemble=e, R_inf=0.0, c=math.inf, residual=math.inf, status=Status.NO_SOLUTION
        )
    R = max(roots, key=lambda r: expected_gain(e, r))
    _, chosen, _ = _terms(e, R)
    level = float(share @ chosen)
    # 1/zeta = g (level - density/(R sqrt(gamma))), which the equation of R makes a single term
    inverse = g * share[1] * chosen[1] / R
    residual = abs(slope(R)) / (R * level)
    return Limit(
        learner=learner,
        ensemble=e,
        R_inf=float(R),
        c=float(2.0 * learner.system().rate * g * g / gamma * level / inverse**2),
        energy=-expected_gain(e, R),
        residual=residual,
        status=Status.CONVERGED if residual < 1e-10 else Status.ROUNDING_FLOOR,
    )
