"""When a task has enough runs: a rule on its first n runs, so that it never matters who was fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from outlearn.model.checks import choice, count, positive
from outlearn.simulation.statistics import QUANTITIES, RunRecord, Summary

__all__ = ["Runs", "StandardError", "StopRule", "runs", "standard_error"]


@runtime_checkable
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
        for have in range(self.every, min(len(records), most) + 1, self.every):
            if have < self.at_least_runs:
                continue
            values = [v for r in records[:have] if (v := getattr(r, self.quantity)) is not None]
            error = Summary.of(values).standard_error
            if not math.isnan(error) and error <= self.at_most:
                return have
        return most if len(records) >= most else None

    def horizon(self, have: int, most: int) -> int:
        """See :class:`StopRule`."""
        return min(most, max(self.at_least_runs, self.every * (have // self.every + 1)))


def runs(number: int) -> Runs:
    """Stop every task after this many runs (or at its own limit, whichever is lower).

    >>> runs(20)
    Runs(count=20)
    """
    return Runs(count("number", number))


def standard_error(
    quantity: str = "R", *, at_most: float, at_least_runs: int = 10, every: int = 10
) -> StandardError:
    """Stop a task when the standard error of the mean of ``quantity`` is at most ``at_most``.

    Looked at after every ``every`` runs in the order of their indices; the task's own ``runs`` is the limit.

    >>> standard_error("Phi", at_most=1e-3).every
    10
    """
    choice("quantity", quantity, QUANTITIES)
    return StandardError(
        quantity=quantity,
        at_most=positive("at_most", at_most),
        at_least_runs=max(2, count("at_least_runs", at_least_runs)),
        every=count("every", every),
    )
