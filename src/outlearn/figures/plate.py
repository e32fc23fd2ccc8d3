"""What making a figure needs, and what it gives: a setting in, a plate out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from outlearn.figures.style import Book
from outlearn.model.checks import choice, count
from outlearn.simulation import Campaign, CampaignResult, Progress, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Agreement", "Plate", "Setting"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How large the figures are made, and with what.

    ``store`` keeps the runs, so that a figure that was interrupted goes on; in memory when left out.
    """

    size: Literal["full", "quick", "tiny"] = "full"
    seed: int = 0
    workers: int | None = 1
    store: Path | None = None
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        choice("size", self.size, ("full", "quick", "tiny"))
        count("seed", self.seed, least=0)

    def pick(self, full: T, quick: T, tiny: T | None = None) -> T:
        """Choose by size; "tiny" is for tests, and "quick" unless given.

        >>> Setting(size="quick").pick(100, 20)
        20
        """
        if self.size == "full":
            return full
        return tiny if self.size == "tiny" and tiny is not None else quick

    def runs(self, tasks: Iterable[Task]) -> CampaignResult:
        """Make the runs of these tasks that are not in the store yet; a task may be named twice."""
        several = {task.strong_id: task for task in tasks}
        campaign = Campaign(several.values(), self.seed)
        return campaign.run(self.store, workers=self.workers, progress=self.progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Theory and runs at one point: means over runs, their standard errors, and how far they are apart.

    ``zone`` is "outside" where the theory has one reachable solution, else "between spinodals"; there
    ``branch`` names the one that the runs are nearest to. ``found`` is how many runs end nearer to the
    reachable solution of largest overlap than to none, where there are several; ``energy`` is per dimension,
    ``lowest`` that of the theory's lowest solution.
    """

    learner: str
    start: str
    n_features: int
    alpha: float
    eta: float
    runs: int
    zone: str
    branch: str
    at_eigenvalue: float
    theory: dict[str, float]
    mean: dict[str, float]
    error: dict[str, float]
    found: int | None = None
    energy: float | None = None
    lowest: float | None = None

    @property
    def pulls(self) -> dict[str, float]:
        """(runs - theory) / standard error of each quantity; NaN of fewer than two runs."""
        return {
            name: (self.mean[name] - self.theory[name]) / self.error[name] if self.error[name] > 0 else np.nan
            for name in self.theory
        }

    @property
    def stable(self) -> bool:
        """Whether replica symmetry holds (AT)."""
        return self.at_eigenvalue < 1.0

    def to_dict(self) -> dict[str, Any]:
        """One row of a table; None for what is not finite, which JSON does not know."""
        row: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "learner",
                "start",
                "n_features",
                "alpha",
                "eta",
                "runs",
                "zone",
                "branch",
            )
        }
        row |= {"at_eigenvalue": _finite(self.at_eigenvalue), "stable": self.stable}
        for name in self.theory:
            row |= {
                f"{name}_theory": self.theory[name],
                f"{name}_runs": self.mean[name],
                f"{name}_se": self.error[name],
                f"{name}_pull": _finite(self.pulls[name]),
            }
        row |= {"found": self.found, "energy_runs": self.energy, "energy_theory": self.lowest}
        return row


def _plain(value: Any) -> Any:
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """One figure with the numbers in it, the comparison of theory with runs, and what it shows in words.

    ``figure`` is None for a plate that is a table only.
    """

    name: str
    title: str
    caption: str
    figure: Figure | None
    book: Book
    findings: Sequence[str] = ()
    agreement: Sequence[Agreement] = ()
    table: Sequence[dict[str, Any]] = ()

    def save(self, folder: Path, *, size: str, seconds: float) -> list[Path]:
        """Write PNG, SVG, CSV and a summary in JSON; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        if self.figure is not None:
            for ending in ("png", "svg"):
                paths.append(folder / f"{self.name}.{ending}")
                metadata = {"Date": None} if ending == "svg" else None
                self.figure.savefig(paths[-1], metadata=metadata)
        paths.append(folder / f"{self.name}.csv")
        self.book.to_frame().to_csv(paths[-1], index=False)
        paths.append(folder / f"{self.name}.json")
        summary = {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "size": size,
            "seconds": round(seconds, 1),
            "findings": list(self.findings),
            "agreement": [point.to_dict() for point in self.agreement],
            "table": [{k: _plain(v) for k, v in row.items()} for row in self.table],
        }
        paths[-1].write_text(
            json.dumps(summary, indent=1, default=float, ensure_ascii=False, allow_nan=False) + "\n"
        )
        return paths
