"""What a fit hands back: the centre, who is informative, how it ended, and every start's outcome."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FitResult", "FitStatus", "StartOutcome"]


class FitStatus(Enum):
    """How a fit ended, in words."""

    CONVERGED = "converged: the residual fell below the tolerance"
    MAX_ITER = "not converged: the residual was still above the tolerance at max_iter"
    ALL_REJECTED = "degenerate: every example was rejected as an outlier"
    COLLAPSED = "degenerate: the centre shrank to zero, nothing tells informative examples from outliers"

    @property
    def converged(self) -> bool:
        """Whether the centre is a fixed point worth using."""
        return self is FitStatus.CONVERGED

    @classmethod
    def of(
        cls, *, converged: bool, kept: float, square: float, n_features: int, noise_variance: float
    ) -> FitStatus:
        """Judge an end: ``kept`` examples count as informative, the centre has squared norm ``square``."""
        if kept < 0.5:  # less than half an example
            return cls.ALL_REJECTED
        # the centre lies far below the noise of a mean over the examples kept
        if square < 1e-6 * n_features * noise_variance / kept:
            return cls.COLLAPSED
        return cls.CONVERGED if converged else cls.MAX_ITER

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOutcome:
    """Where one starting point led.

    Attributes
    ----------
    name : str
        Kind of start: "hebb", "random", "spectral", "soft", "amp" or "given".
    energy : float
        Energy at the end, comparable between the starts of one fit.
    n_iter : int
        EM steps taken (an accepted extrapolation counts as one).
    residual : float
        Undamped |F(c) - c|/|c| at the end.
    status : FitStatus
    overlap : float
        Cosine between this centre and the one of lowest energy.
    """

    name: str
    energy: float
    n_iter: int
    residual: float
    status: FitStatus
    overlap: float

    @property
    def converged(self) -> bool:
        """Whether this start reached a fixed point."""
        return self.status.converged

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"status": self.status.name}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FitResult:
    """One fitted centre in raw units (c = J/√N), with what it took to get there.

    Attributes
    ----------
    center : array (n_features,)
        c, the centre of the informative examples after folding by their labels.
    inlier_proba : array (n_samples,)
        Probability (soft) or decision 0/1 (hard) that an example is informative.
    energy : float
        Training energy at the end; the lowest over the starts.
    n_iter : int
        EM steps of the winning start.
    n_reads : int
        Times the data were read for the whole fit, all starts together.
    status : FitStatus
    residual : float
        Undamped |F(c) - c|/|c| of the winner.
    contamination, noise_variance, center_variance : float
        Outlier fraction, variance of a cluster, prior variance of a coordinate of the centre:
        as given, or as learned.
    starts : tuple of StartOutcome
    energies : array or None
        Energy of the winner at every accepted step, when it was asked for.
    """

    center: NDArray[np.float64]
    inlier_proba: NDArray[np.float64]
    energy: float
    n_iter: int
    n_reads: int
    status: FitStatus
    contamination: float
    noise_variance: float
    center_variance: float
    residual: float = 0.0
    starts: tuple[StartOutcome, ...] = ()
    energies: NDArray[np.float64] | None = None

    @property
    def converged(self) -> bool:
        """Whether the winning start reached a fixed point."""
        return self.status.converged

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python values (arrays as lists)."""
        out: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("center", "inlier_proba", "energies"):
            if out[name] is not None:
                out[name] = np.asarray(out[name]).tolist()
        out["status"] = self.status.name
        out["starts"] = [start.to_dict() for start in self.starts]
        return out

    def to_frame(self) -> Any:
        """Return the outcomes of the starts as a pandas table, lowest energy first."""
        import pandas as pd

        columns = [f.name for f in fields(StartOutcome)]
        table = pd.DataFrame([start.to_dict() for start in self.starts], columns=columns)
        return table.sort_values("energy", ignore_index=True)

    def __repr__(self) -> str:
        p = self.inlier_proba
        lines = [
            f"FitResult: {self.status}",
            f"  energy {self.energy:.8g} after {self.n_iter} steps, {self.n_reads} reads, "
            f"residual {self.residual:.1e}",
            f"  {p.sum():.1f} of {p.size} examples informative; contamination {self.contamination:.4g}",
            f"  |center| {np.linalg.norm(self.center):.6g}, noise variance {self.noise_variance:.6g}, "
            f"center variance {self.center_variance:.6g}",
        ]
        if self.starts:
            done = sum(start.converged for start in self.starts)
            near = sum(abs(start.overlap) > 0.99 for start in self.starts)
            lines.append(f"  {len(self.starts)} starts: {done} converged, {near} to this centre")
        return "\n".join(lines)
