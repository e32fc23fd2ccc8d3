"""What remains when the number of examples per dimension goes to infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from outlearn.model import Ensemble
from outlearn.model.checks import numbers, positive
from outlearn.model.ensemble import checked_ensemble
from outlearn.numerics.status import Status
from outlearn.theory.system import system_of

if TYPE_CHECKING:
    import pandas as pd

    from outlearn.theory.system import Learner

__all__ = ["Limit", "downward_crossings", "limit", "overlap_grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Leading order of a learner at large alpha: R -> R_inf and Q - R² -> c/alpha.

    Attributes
    ----------
    R_inf : float
        Overlap with the truth that is left; 1 for a learner that is consistent.
    c : float
        Coefficient of the shrinking noise; ``inf`` where the direction is never learnt.
    energy : float
        Free energy per example, lim f/alpha, where the learner has one.
    residual : float
        Of the equation that fixes R_inf.
    status : Status
    """

    learner: Learner
    ensemble: Ensemble
    R_inf: float
    c: float
    energy: float = math.nan
    residual: float
    status: Status

    @property
    def distance(self) -> float:
        """Δ at alpha = infinity, (1 - R_inf)²."""
        return (1.0 - self.R_inf) ** 2

    def angle(self, alpha: ArrayLike) -> Any:
        """Asymptotic direction error, Φ ≃ √(c/alpha)/(π R_inf)."""
        alphas = numbers("alpha", alpha, "a number > 0", lambda x: x > 0.0)
        return (np.sqrt(self.c / alphas) / (math.pi * self.R_inf)).reshape(np.shape(alpha))[()]

    def order_parameters(self, alpha: float) -> tuple[float, float]:
        """R and Q to leading order."""
        return self.R_inf, self.R_inf**2 + self.c / positive("alpha", alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return a flat mapping."""
        return {
            "learner": repr(self.learner),
            **self.ensemble.to_dict(),
            "R_inf": self.R_inf,
            "c": self.c,
            "energy": self.energy,
            "distance": self.distance,
            "residual": self.residual,
            "status": self.status.name,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table of one row."""
        import pandas as pd

        return pd.DataFrame([self.to_dict()])

    def __repr__(self) -> str:
        return (
            f"Limit({self.learner!r}, eta={self.ensemble.eta:g}, gamma={self.ensemble.gamma:g}: "
            f"R_inf={self.R_inf:.8g}, Phi ~ sqrt({self.c:.6g}/alpha)/(pi R_inf), {self.status.name})"
        )


def overlap_grid(e: Ensemble) -> NDArray[np.float64]:
    """Overlaps R among which the minimum of an expected loss lies.

    Beyond R = sqrt(2 max(eta, 1)/g) and a few widths no learner of this family gains anything.
    """
    top = 4.0 + 4.0 * math.sqrt(2.0 * max(abs(e.eta_tilde), 1.0) / e.gamma_tilde) + 12.0 / math.sqrt(e.gamma)
    # a root of every matched learner is R = 1, which is no point of the grid
    return np.unique(np.concatenate([np.geomspace(1e-20 * top, top, 240), np.linspace(0.0099, top, 120)]))


def downward_crossings(slope: Callable[[float], float], grid: NDArray[np.float64]) -> list[float]:
    """Where ``slope`` passes from positive to negative, to full relative precision."""
    values = np.array([slope(float(R)) for R in grid])
    places = np.flatnonzero((values[:-1] > 0.0) & (values[1:] <= 0.0))
    logs = np.log(grid)
    return [
        math.exp(brentq(lambda u: slope(math.exp(u)), logs[i] - 1e-14, logs[i + 1] + 1e-14, xtol=1e-15))
        for i in places
    ]


def limit(learner: Learner, ensemble: Ensemble) -> Limit:
    """Give the learner's asymptotics for alpha -> infinity."""
    system_of(learner)
    return learner.limit(checked_ensemble(ensemble))
