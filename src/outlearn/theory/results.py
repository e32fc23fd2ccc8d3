"""What the theory returns: one saddle point, with its parameters, its errors and a status."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from outlearn.model import Ensemble, angle, distance
from outlearn.numerics.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from outlearn.theory.system import Learner

__all__ = ["SaddlePoint", "to_frame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaddlePoint:
    """One solution of a learner's saddle-point equations.

    Attributes
    ----------
    learner, ensemble, alpha
        What was solved.
    R, Q, q, z : float
        Order parameters; ``q`` equals Q at zero temperature, ``z`` is None where it does not exist.
    Q_hat : float or None
        Selected examples per dimension (hard selection), else None.
    free_energy : float
        f of this solution; the lowest one is the equilibrium.
    at_eigenvalue : float
        De Almeida-Thouless: the solution is stable against replica symmetry breaking iff this is below 1;
        ``inf`` where a proximal operator jumps, ``nan`` where it is not defined.
    residual : float
        Largest component of the undamped residual (relative, in the order parameters).
    quadrature_error : float
        Change of R and Q that a finer quadrature makes, the larger of the two.
    branch : str
        Name of the branch: "informative", "uninformative", "trivial", "unstable".
    status : Status
    details : mapping of further numbers that this learner has (for example "intercept").
    """

    learner: Learner
    ensemble: Ensemble
    alpha: float
    R: float
    Q: float
    q: float
    z: float | None = None
    Q_hat: float | None = None
    free_energy: float
    at_eigenvalue: float = math.nan
    residual: float
    quadrature_error: float
    branch: str = ""
    status: Status
    details: tuple[tuple[str, float], ...] = ()

    @property
    def angle(self) -> float:
        """Direction error Φ = arccos(R/√Q)/π (Eq. phi)."""
        return float(angle(self.R, self.Q))

    @property
    def distance(self) -> float:
        """Δ = Q - 2R + 1."""
        return float(distance(self.R, self.Q))

    @property
    def test_error(self) -> float:
        """Error of sign(J·ξ) on fresh *informative* points: Φ_N(-√γ R/√Q); 1/2 for a vanishing J."""
        cosine = self.R / math.sqrt(self.Q) if self.Q > 0.0 else 0.0
        return float(ndtr(-math.sqrt(self.ensemble.gamma) * cosine))

    @property
    def stream_error(self) -> float:
        """Error of sign(J·ξ) on the contaminated stream: outliers are guessed, half of them wrongly."""
        return self.ensemble.informative_fraction * self.test_error + 0.5 * self.ensemble.outlier_fraction

    @property
    def stable(self) -> bool:
        """Whether replica symmetry holds here (de Almeida-Thouless)."""
        return self.at_eigenvalue < 1.0

    @property
    def overlap(self) -> float:
        """Cosine R/√Q between the learner's vector and the truth; 0 for a vanishing vector."""
        return self.R / math.sqrt(self.Q) if self.Q > 0.0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return every number, the derived ones too, as a flat mapping."""
        return {
            "learner": repr(self.learner),
            **self.ensemble.to_dict(),
            "alpha": self.alpha,
            "branch": self.branch,
            **{name: getattr(self, name) for name in ("R", "Q", "q", "z", "Q_hat", "free_energy")},
            "angle": self.angle,
            "distance": self.distance,
            "test_error": self.test_error,
            "stream_error": self.stream_error,
            "stable": self.stable,
            "at_eigenvalue": self.at_eigenvalue,
            "residual": self.residual,
            "quadrature_error": self.quadrature_error,
            "status": self.status.name,
            **dict(self.details),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table of one row."""
        return to_frame([self])

    def __repr__(self) -> str:
        values = [f"R={self.R:.6g}", f"Q={self.Q:.6g}"]
        if self.z is not None:
            values.append(f"z={self.z:.6g}")
        if self.Q_hat is not None:
            values.append(f"Q_hat={self.Q_hat:.6g}")
        values += [f"f={self.free_energy:.6g}", f"Phi={self.angle:.6g}"]
        return (
            f"SaddlePoint({self.learner!r}, alpha={self.alpha:g}, eta={self.ensemble.eta:g}, "
            f"gamma={self.ensemble.gamma:g}, {self.branch or 'branch unnamed'}: {', '.join(values)}, "
            f"{'stable' if self.stable else 'not AT-stable'}, {self.status.name})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(_short(value))}</td></tr>"
            for name, value in self.to_dict().items()
        )
        return f"<table>{rows}</table><p>{html.escape(str(self.status))}</p>"


def to_frame(points: Iterable[SaddlePoint]) -> pd.DataFrame:
    """Put saddle points into one table, a row each."""
    import pandas as pd

    return pd.DataFrame([p.to_dict() for p in points])


def _short(value: object) -> str:
    return f"{value:.8g}" if isinstance(value, float | np.floating) else str(value)
