"""Soft selection: the MAP estimate of J, each example weighed by its probability of being informative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from outlearn.model import Ensemble
from outlearn.model.checks import choice
from outlearn.numerics import Status
from outlearn.theory.bayes_averages import (
    SIGMOID,
    SIGMOID_SQUARE,
    SOFTPLUS,
    log_average,
    log_average_wide,
    softplus,
)
from outlearn.theory.hebb import Hebb
from outlearn.theory.limit import Limit, downward_crossings, overlap_grid
from outlearn.theory.printed import PrintedSoftSystem
from outlearn.theory.selection import SelectionSystem
from outlearn.theory.selection_averages import EXACT_SOFT

__all__ = ["SoftSelection", "SoftSystem"]

_WIDE = 100.0  # a spread of the local field at which panels cost less than the trapezoidal rule


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
        and ``c = zeta² (g²/gamma) <sigma²>``, ``1/zeta = g (<sigma> - (g/gamma) <sigma'>)``. A matched
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


def log_averages(kind: int, e: Ensemble, R: float) -> np.ndarray:
    """ln p_V<F(a)> at J = R B, for V = 0 and 1: logarithms, since all of them vanish for large eta.

    >>> np.exp(log_averages(SIGMOID, Ensemble(eta=0.0, gamma=10.0), 1.0)).round(6)
    array([0.042198, 0.457802])
    """
    g = e.gamma_tilde
    spread = g * R / math.sqrt(e.gamma)
    out = np.array([-softplus(-e.eta), -softplus(e.eta)])
    for V in range(2):
        mean = g * R * V - 0.5 * g * R * R - e.eta_tilde
        wide = spread > _WIDE
        out[V] += log_average_wide(kind, mean, spread) if wide else log_average(kind, mean, spread**2, 0.0)
    return out


def _limit(learner: SoftSelection, e: Ensemble) -> Limit:
    ratio = e.gamma_tilde / e.gamma

    def slope(R: float) -> float:
        """p_1<sigma>_{V=1} - R (<sigma> - (g/gamma)<sigma'>) as a share of its largest term.

        sigma' = sigma - sigma²: for g <= gamma nothing cancels.
        """
        weight, square = log_averages(SIGMOID, e, R), log_averages(SIGMOID_SQUARE, e, R)
        logs = np.array([weight[1], np.logaddexp(*weight), np.logaddexp(*square)])
        signal, level, kept = np.exp(logs - logs.max())
        terms = signal, R * (1.0 - ratio) * level, R * ratio * kept
        return float((terms[0] - terms[1] - terms[2]) / max(map(abs, terms)))

    # the expected loss falls where the slope is positive: its minima are the downward crossings
    roots = downward_crossings(slope, overlap_grid(e))
    if not roots:
        return Limit(
            learner=learner, ensemble=e, R_inf=0.0, c=math.inf, residual=math.inf, status=Status.NO_SOLUTION
        )
    energies = [-float(np.exp(log_averages(SOFTPLUS, e, R)).sum()) for R in roots]
    R = roots[int(np.argmin(energies))]
    residual = abs(slope(R))
    square = float(np.logaddexp(*log_averages(SIGMOID_SQUARE, e, R)))
    return Limit(
        learner=learner,
        ensemble=e,
        R_inf=R,
        c=R * R / e.gamma * math.exp(square - 2.0 * log_averages(SIGMOID, e, R)[1]),
        energy=min(energies),
        residual=residual,
        status=Status.CONVERGED if residual < 1e-10 else Status.ROUNDING_FLOOR,
    )
