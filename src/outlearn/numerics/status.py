"""How a number came about: one vocabulary for every solver, whose words read as sentences."""

from __future__ import annotations

from enum import Enum

__all__ = ["Status"]


class Status(Enum):
    """What a solver says about a number that it returns.

    >>> print(Status.CONVERGED)
    The residual is below the tolerance.
    >>> Status.CONVERGED.ok, Status.STALLED.ok
    (True, False)
    """

    CONVERGED = "The residual is below the tolerance."
    EXPLICIT = "The solution is known in closed form."
    ROUNDING_FLOOR = "The residual stays above the tolerance because rounding allows no smaller one."
    QUADRATURE_LIMITED = (
        "The equations are solved, but the Gaussian averages in them are less accurate than asked."
    )
    STALLED = "The iteration stopped moving before the residual was small."
    ITERATION_LIMIT = "The iteration limit was reached before the residual was small."
    OUT_OF_RANGE = "The iteration left the range in which the equations can be evaluated."
    NOT_DEFINED = "The equations do not exist at these parameters."
    NO_SOLUTION = "No solution was found at these parameters."

    def __str__(self) -> str:
        return self.value

    @property
    def ok(self) -> bool:
        """Whether the number may be used without a second thought."""
        return self in (Status.CONVERGED, Status.EXPLICIT)
