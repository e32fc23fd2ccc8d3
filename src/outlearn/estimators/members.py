"""Members of the automatic classifier: what each learned, and what it was found to be worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from outlearn.estimators.base import SelectionClassifier
from outlearn.inference.posterior import project

__all__ = ["MEMBERS", "Member", "MemberScore", "MemberTable", "Tried"]

Array = NDArray[np.float64]

MEMBERS = ("hebb", "lda", "soft", "bayes", "logistic", "robust logistic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """One learner after its fit to all: a linear rule, and what it says of outliers."""

    name: str
    coef: Array
    intercept: Array
    contamination: float
    detail: str
    n_iter: int
    selector: SelectionClassifier | None
    """The fitted classifier, where it has a model of the inputs."""

    @property
    def selects(self) -> bool:
        """Whether the member itself tells informative examples from others."""
        return self.selector is not None and bool(self.selector.model_.mixture.states[0] < 1.0 - 1e-6)

    def scores(self, Z: Any) -> Array:
        """(P, 1) log odds of the second of two classes, or (P, K) class scores."""
        return project(Z, self.coef) + self.intercept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """A member and how it did on the examples that its fits to parts had not seen."""

    member: Member
    held_out: Array
    own: Array | None = None
    """ln p(y | x) as the member itself has it, garbage-like inputs included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberScore:
    """What one member was found to be worth."""

    name: str
    held_out: float
    """Mean ln p(y | x) of observed labels that the member had not seen, brought to one calibration."""
    behind: float
    """Standard errors behind the best member."""
    weight: float
    """Share in the pooled rule."""
    contamination: float
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTable:
    """All members that were tried, best first."""

    rows: tuple[MemberScore, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as dictionaries."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def to_frame(self) -> pd.DataFrame:
        """One row per member."""
        return pd.DataFrame([row.to_dict() for row in self.rows])

    def __repr__(self) -> str:
        lines = [f"{'member':<16} {'held-out ln p':>13} {'behind':>7} {'weight':>6} {'contam.':>7}  detail"]
        lines += [
            f"{r.name:<16} {r.held_out:>13.4f} {r.behind:>6.1f}σ {r.weight:>6.2f} {r.contamination:>7.2f}  "
            f"{r.detail}"
            for r in self.rows
        ]
        return "\n".join(lines)
