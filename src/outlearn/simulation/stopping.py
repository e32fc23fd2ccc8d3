"""When a task has enough runs: a rule on its first n runs, so that it never matters who was fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from outlearn.exceptions import ParameterError
from outlearn.simulation.statistics import QUANTITIES, RunRecord, Summary

__all__ = ["Runs", "StandardError", "StopRule", "runs", "standard_error"]


class StopRule(Protocol):
    """Decides how many runs of a task count."""

    def stop(self, records: Sequence[RunRecord], most: int) -> int | None:
        """Say how many of these first runs are enough, or None; ``most`` is the task's own limit."""
        ...

    def horizon(self, have: int, most: int) -> int:
        """Say how many runs may be needed next, when the first ``have`` were not enough."""
        ...


@dataclass(frozen=True, slots=True)
class Runs:
    """Stop after a fixed number of runs."""

    count: int

    def stop(self, records: Sequence[RunRecord], most: int) -> int | None:
        """See :class:`StopRule`."""
        wanted = min(self.count, most)
        return wanted if len(records) >= wanted else None

    def horizon(self, have: int, most: int) -> int:
        """See :class:`StopRule`."""
        return min(self.count, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardError:
    """Stop when the standard error of a mean is small; looked at after every ``every`` runs."""

    quantity: str
    at_most: float
    at_least_runs: int
    every: int

    def stop(self, records: Sequence[RunRecord], most: int) -> int | None:
        """See :class:`StopRule`."""
        for count in range(self.every, min(len(records), most) + 1, self.every):
            if count < self.at_least_runs:
                continue
            values = [v for r in records[:count] if (v := getattr(r, self.quantity)) is not None]
            error = Summary.of(values).standard_error
            if not math.isnan(error) and error <= self.at_most:
                return count
        return most if len(records) >= most else None

    def horizon(self, have: int, most: int) -> int:
        """See :class:`StopRule`."""
        return min(most, max(self.at_least_runs, self.every * (have // self.every + 1)))


def runs(count: int) -> Runs:
    """Stop every task after ``count`` runs (or at its own limit, whichever is lower).

    >>> runs(20)
    Runs(count=20)
    """
    return Runs(_whole("count", count))


def standard_error(
    quantity: str = "R", *, at_most: float, at_least_runs: int = 10, every: int = 10
) -> StandardError:
    """Stop a task when the standard error of the mean of ``quantity`` is at most ``at_most``.

    Looked at after every ``every`` runs in the order of their indices; the task's own ``runs`` is the limit.

    >>> standard_error("Phi", at_most=1e-3).every
    10
    """
    if quantity not in QUANTITIES:
        raise ParameterError("quantity", quantity, "one of " + ", ".join(QUANTITIES))
    if isinstance(at_most, bool) or not isinstance(at_most, int | float) or not 0.0 < at_most < math.inf:
        raise ParameterError("at_most", at_most, "a finite number > 0")
    least, step = _whole("at_least_runs", at_least_runs), _whole("every", every)
    return StandardError(quantity=quantity, at_most=float(at_most), at_least_runs=max(2, least), every=step)


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(name, value, "a whole number >= 1")
    return value
