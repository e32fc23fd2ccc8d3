"""Statistics of runs that add exactly: the same numbers whatever the order or the grouping of the parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from outlearn.exceptions import DataError
from outlearn.model import angle, distance
from outlearn.model.checks import number

__all__ = ["CONVERGED", "FAILED", "QUANTITIES", "RunRecord", "Summary", "TaskStats"]

QUANTITIES = ("R", "Q", "z", "energy", "Phi", "Delta", "iterations", "data_reads")
CONVERGED = "converged"
FAILED = "failed"
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What one run gave: order parameters, energy per dimension, costs; a failed one has its status only.

    >>> run = RunRecord(index=0, status="converged", R=0.9, Q=0.9, energy=-2.0, iterations=7, data_reads=8)
    >>> round(run.Phi, 4), round(run.Delta, 4)
    (0.1024, 0.1)
    """

    index: int
    status: str
    R: float | None = None
    Q: float | None = None
    z: float | None = None
    energy: float | None = None
    iterations: int | None = None
    data_reads: int | None = None

    def __post_init__(self) -> None:
        if self.index < 0:
            raise DataError(f"a run has index {self.index}")
        if not self.status:
            raise DataError(f"run {self.index} has no status")
        if (self.R is None) != (self.Q is None) or (self.R is None) != self.failed:
            raise DataError(
                f"run {self.index} ({self.status}) must have R and Q exactly when it did not fail"
            )
        for name in ("R", "Q", "z", "energy", "iterations", "data_reads"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise DataError(f"run {self.index} has {name} = {value}")
        if self.R is not None and self.Q is not None and self.R**2 > self.Q * (1 + _ROUNDING) + _ROUNDING:
            raise DataError(
                f"run {self.index} has R = {self.R}, Q = {self.Q}: R^2 <= Q always (Cauchy-Schwarz)"
            )

    @property
    def failed(self) -> bool:
        """Whether the run ended in an error, with no numbers."""
        return self.status.startswith(FAILED)

    @property
    def Phi(self) -> float | None:
        """Direction error (Eq. phi)."""
        return None if self.R is None or self.Q is None else float(angle(self.R, self.Q))

    @property
    def Delta(self) -> float | None:
        """Squared distance to the truth per coordinate."""
        return None if self.R is None or self.Q is None else float(distance(self.R, self.Q))


@dataclass(frozen=True)
class Summary:
    """One quantity over runs, kept as its sorted values: so sums are exact and quantiles are no estimates.

    >>> both = Summary.of([1.0, 4.0]) + Summary.of([1.0])
    >>> both.count, both.mean, both.M2, both.quantile(0.5)
    (3, 2.0, 6.0, 1.0)
    """

    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if any(a > b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise DataError("the values of a summary must be sorted")
        if not all(map(math.isfinite, self.values)):
            raise DataError("the values of a summary must be finite")

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """Summarise values in any order."""
        try:
            return cls(tuple(sorted(map(float, values))))
        except (TypeError, ValueError):
            raise DataError("a summary is made of numbers") from None

    def __add__(self, other: Summary) -> Summary:
        return Summary(tuple(sorted(self.values + other.values)))

    @property
    def count(self) -> int:
        """How many runs gave this quantity."""
        return len(self.values)

    @cached_property
    def mean(self) -> float:
        """Mean; NaN of nothing."""
        return math.fsum(self.values) / self.count if self.values else math.nan

    @cached_property
    def M2(self) -> float:
        """Sum of squared deviations from the mean."""
        return math.fsum((v - self.mean) ** 2 for v in self.values)

    @property
    def variance(self) -> float:
        """Unbiased variance; NaN below two values."""
        return self.M2 / (self.count - 1) if self.count > 1 else math.nan

    @property
    def std(self) -> float:
        """Standard deviation over runs."""
        return math.sqrt(self.variance)

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return self.std / math.sqrt(self.count) if self.count else math.nan

    def quantile(self, probability: float) -> float:
        """Value below which this part of the runs lies, interpolated linearly; NaN of nothing."""
        number("probability", probability, "a number in [0, 1]", lambda x: 0.0 <= x <= 1.0)
        if not self.values:
            return math.nan
        place = probability * (self.count - 1)
        low = min(int(place), max(self.count - 2, 0))
        high = min(low + 1, self.count - 1)
        return self.values[low] + (place - low) * (self.values[high] - self.values[low])

    def __repr__(self) -> str:
        return f"Summary(count={self.count}, mean={self.mean:.6g}, standard_error={self.standard_error:.2g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStats:
    """All runs of one task, failures counted; two of them add to the statistics of all their runs.

    Attributes
    ----------
    strong_id : str
        The task's name.
    statuses : mapping of str to int
        How many runs ended how; a run that failed is counted here and nowhere else.
    R, Q, z, energy, Phi, Delta, iterations, data_reads : Summary
        Over the runs that gave the quantity. ``energy`` is per dimension, without the constants of the
        data, as the free energy of the theory is; ``z`` is empty where it has no meaning.
    """

    strong_id: str
    statuses: Mapping[str, int] = field(default_factory=dict, hash=False)
    R: Summary = Summary()
    Q: Summary = Summary()
    z: Summary = Summary()
    energy: Summary = Summary()
    Phi: Summary = Summary()
    Delta: Summary = Summary()
    iterations: Summary = Summary()
    data_reads: Summary = Summary()

    def __post_init__(self) -> None:
        object.__setattr__(self, "statuses", MappingProxyType(dict(sorted(self.statuses.items()))))
        if any(count < 1 for count in self.statuses.values()):
            raise DataError(f"statuses with no run: {dict(self.statuses)}")
        for name in ("R", "Q", "Phi", "Delta"):
            if getattr(self, name).count != self.n_runs - self.n_failed:
                raise DataError(
                    f"{name} has {getattr(self, name).count} values of {self.n_runs - self.n_failed} runs"
                )
        for name in ("z", "energy", "iterations", "data_reads"):
            if getattr(self, name).count > self.n_runs - self.n_failed:
                raise DataError(f"{name} has more values than there are runs")
        for name, low, high in (
            ("Q", 0.0, math.inf),
            ("Phi", 0.0, 1.0),
            ("Delta", -_ROUNDING, math.inf),
            ("iterations", 0.0, math.inf),
            ("data_reads", 0.0, math.inf),
        ):
            values = getattr(self, name).values
            if values and not (low <= values[0] and values[-1] <= high):
                raise DataError(f"{name} lies in [{values[0]}, {values[-1]}], outside [{low:g}, {high:g}]")

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)} | {"statuses": dict(self.statuses)}
        return partial(TaskStats, **values), ()

    @classmethod
    def of(cls, strong_id: str, runs: Iterable[RunRecord]) -> TaskStats:
        """Gather runs, in any order; an index that comes twice is an error."""
        records = list(runs)
        seen: set[int] = set()
        statuses: dict[str, int] = {}
        for record in records:
            if record.index in seen:
                raise DataError(f"run {record.index} is counted twice")
            seen.add(record.index)
            statuses[record.status] = statuses.get(record.status, 0) + 1
        summaries = {
            name: Summary.of(v for r in records if (v := getattr(r, name)) is not None) for name in QUANTITIES
        }
        return cls(strong_id=strong_id, statuses=statuses, **summaries)

    def __add__(self, other: TaskStats) -> TaskStats:
        if self.strong_id != other.strong_id:
            raise DataError("statistics of two different tasks do not add")
        statuses = dict(self.statuses)
        for status, count in other.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
        return TaskStats(
            strong_id=self.strong_id,
            statuses=statuses,
            **{name: getattr(self, name) + getattr(other, name) for name in QUANTITIES},
        )

    @property
    def n_runs(self) -> int:
        """How many runs were made, failed ones included."""
        return sum(self.statuses.values())

    @property
    def n_failed(self) -> int:
        """How many ended in an error."""
        return sum(count for status, count in self.statuses.items() if status.startswith(FAILED))

    @property
    def n_converged(self) -> int:
        """How many converged."""
        return self.statuses.get(CONVERGED, 0)

    @property
    def angle_of_means(self) -> float:
        """Φ from the means of R and Q, as the paper's figure 4 has it; not the mean of Φ."""
        return float(angle(self.R.mean, self.Q.mean))

    def to_dict(self) -> dict[str, Any]:
        """One row of a table: counts, then mean, M2, standard error and five quantiles of each quantity."""
        row: dict[str, Any] = {
            "strong_id": self.strong_id,
            "runs": self.n_runs,
            "converged": self.n_converged,
            "failed": self.n_failed,
        }
        for name in QUANTITIES:
            summary: Summary = getattr(self, name)
            row |= {
                f"{name}_count": summary.count,
                f"{name}_mean": summary.mean,
                f"{name}_M2": summary.M2 if summary.count else math.nan,
                f"{name}_se": summary.standard_error,
            }
            row |= {
                f"{name}_q{round(100 * p):02d}": summary.quantile(p) for p in (0.05, 0.25, 0.5, 0.75, 0.95)
            }
        return row

    def __repr__(self) -> str:
        parts = [f"{self.n_runs} runs"]
        if self.n_runs != self.n_converged:
            parts.append(", ".join(f"{count} {status}" for status, count in self.statuses.items()))
        for name in ("R", "Q", "Phi"):
            s: Summary = getattr(self, name)
            parts.append(f"{name}={s.mean:.5g}±{s.standard_error:.1g}")
        return f"TaskStats({'; '.join(parts)})"
