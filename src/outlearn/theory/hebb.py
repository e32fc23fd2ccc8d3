"""The Hebb rule: every example weighs the same, and everything is known in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outlearn.model import Ensemble
from outlearn.numerics import Status
from outlearn.theory.limit import Limit
from outlearn.theory.selection import SelectionSystem
from outlearn.theory.selection_averages import HEBB
from outlearn.theory.system import Points

__all__ = ["Hebb", "HebbSystem"]


class HebbSystem(SelectionSystem):
    """``L(a; b) = a + b/2``: the shared equations reduce to the closed form, which serves as the start."""

    rule = HEBB

    def starts(self, points: Points) -> NDArray[np.float64]:
        """The solution itself."""
        shrink = 1.0 / (points.alpha + 1.0 / points.gamma_tilde)
        R, T = points.alpha * points.p1 * shrink, points.alpha / points.gamma * shrink**2
        z = shrink / points.gamma_tilde
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(np.stack([R, T, z], axis=1), 1e-250))[None]


@dataclass(frozen=True, slots=True)
class Hebb:
    """The Hebb rule J ∝ Σ S ξ of Eq. Hebb: R = α p1/(α + 1/γ̃), Q = R² + (α/γ)/(α + 1/γ̃)².

    Its free energy is that of the loss ``-(γ̃ h - γ̃ Q/2)``: soft selection at η̃ = -∞ without the constant η̃.

    >>> from outlearn import theory
    >>> s = theory.solve(Hebb(), Ensemble(eta=0.0, gamma=10.0), alpha=1)
    >>> round(s.R, 6), round(s.Q, 6)
    (0.454545, 0.289256)
    """

    def system(self) -> HebbSystem:
        """The saddle-point equations."""
        return HebbSystem()

    def limit(self, ensemble: Ensemble) -> Limit:
        """alpha -> infinity: R -> p1, so the direction is found and the length is not (Δ -> p0²)."""
        p1 = ensemble.informative_fraction
        g = ensemble.gamma_tilde
        return Limit(
            learner=self,
            ensemble=ensemble,
            R_inf=p1,
            c=1.0 / ensemble.gamma if p1 > 0.0 else math.inf,
            energy=-0.5 * g * p1**2,
            residual=0.0,
            status=Status.EXPLICIT,
        )
