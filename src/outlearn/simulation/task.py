"""What one point of a campaign is, and the name that never changes: a hash of all that defines it."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from outlearn.exceptions import DataError, ParameterError
from outlearn.model import Ensemble
from outlearn.model.checks import choice, count, flag, number, positive
from outlearn.simulation.cost import cheaper_draw
from outlearn.simulation.dice import MOST_NUMBERS

__all__ = ["DRAWS", "LEARNERS", "STARTS", "Task", "grid"]

LEARNERS = ("soft", "hard", "hebb", "amp")
STARTS = ("random", "hebb", "teacher", "amp", "soft", "spectral")
DRAWS = ("dense", "matrix-free")
_LEARNABLE = ("center_variance", "contamination", "noise_variance")
# What a run means, by how its data are drawn: raised whenever a change alters the numbers that a task gives,
# so that old rows are never counted as rows of the new meaning.
_MEANING = {"dense": 1, "matrix-free": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One learner on one ensemble at one size: the unit that is run again and again.

    ``runs`` is how many runs are wanted at most; it is not part of the identity, so that asking for more
    later goes on from the runs that are there.

    Parameters
    ----------
    learner : {"soft", "hard", "hebb", "amp"}
        The algorithm: the two selections by plain EM, the Hebbian vector, message passing.
    ensemble : Ensemble
        How the data are drawn, and what the learner believes of it.
    n_features : int
        N.
    alpha : float
        Examples per dimension; P = round(αN).
    runs : int
        Most runs that are made.
    start : {"random", "hebb", "teacher", "amp", "soft", "spectral"}
        Where the algorithm starts: J ~ N(0, I), the Hebbian vector, the truth B, or what another
        algorithm found on the same data. The Hebbian learner has none.
    max_iter, tol : int, float
        Given to the algorithm as they are.
    accelerate : bool
        Whether EM extrapolates. Off by default: it changes the basin that a start reaches.
    learn : tuple of str
        Parameters that the algorithm fits along the way.
    draw : {"auto", "dense", "matrix-free"}
        How the data are drawn; "auto" is replaced by the cheaper of the two.
    dtype : {"float64", "float32"}
        Precision of a dense draw.

    Examples
    --------
    >>> task = Task(learner="soft", ensemble=Ensemble(eta=0.0, gamma=10.0), n_features=100, alpha=20)
    >>> task.n_samples, task.draw
    (2000, 'matrix-free')
    >>> Task.from_dict(task.to_dict()) == task
    True
    """

    learner: str
    ensemble: Ensemble
    n_features: int
    alpha: float
    runs: int = 100
    start: str | None = "random"
    max_iter: int = 5000
    tol: float = 1e-8
    accelerate: bool = False
    learn: tuple[str, ...] = ()
    draw: str = "auto"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        choice("learner", self.learner, LEARNERS)
        if not isinstance(self.ensemble, Ensemble):
            raise ParameterError("ensemble", self.ensemble, "an Ensemble")
        for name in ("n_features", "runs", "max_iter"):
            put(name, count(name, getattr(self, name)))
        put("alpha", positive("alpha", self.alpha))
        put("tol", number("tol", self.tol, "0 < tol < 1", lambda x: 0.0 < x < 1.0))
        if self.n_samples < 1:
            raise ParameterError(
                "alpha", self.alpha, f"at least one example: alpha * {self.n_features} >= 1/2"
            )
        if self.learner == "hebb":
            put("start", None)
        else:
            belief = self.ensemble.eta_tilde
            if Ensemble(belief, 1.0).outlier_fraction == 1.0:
                raise ParameterError(
                    "eta_tilde", belief, "an outlier fraction below 1 to double precision, <= 36"
                )
            choice("start", self.start, STARTS)
            if self.start == self.learner:
                raise ParameterError("start", self.start, "another algorithm than the learner itself")
        put("accelerate", flag("accelerate", self.accelerate) and self.learner in ("soft", "hard"))
        if not isinstance(self.learn, Iterable):
            raise ParameterError("learn", self.learn, "names of parameters")
        names = (self.learn,) if isinstance(self.learn, str) else tuple(self.learn)
        for name in names:
            choice("learn", name, _LEARNABLE)
        put("learn", tuple(sorted(set(names))))
        choice("dtype", self.dtype, ("float32", "float64"))
        choice("draw", self.draw, ("auto", *DRAWS))
        needs_matrix = self.start == "spectral" or "noise_variance" in self.learn
        if self.draw == "auto":
            sizes = self.n_features, self.n_samples, self.ensemble
            put("draw", "dense" if needs_matrix else cheaper_draw(*sizes, compiled=self.is_plain_em))
        elif self.draw == "matrix-free" and needs_matrix:
            raise ParameterError(
                "draw", self.draw, "'dense' where the spectral start or the norms of the rows are asked for"
            )
        if self.draw == "matrix-free":
            put("dtype", "float64")
            if self.n_samples + self.n_features > MOST_NUMBERS:
                raise ParameterError(
                    "alpha", self.alpha, f"P + N <= {MOST_NUMBERS}, what memory holds (N = {self.n_features})"
                )

    @property
    def n_samples(self) -> int:
        """P, the number of examples of a run."""
        return round(self.alpha * self.n_features)

    @property
    def is_plain_em(self) -> bool:
        """Whether it is EM with known parameters from a simple start, of which whole runs are compiled."""
        return (
            self.learner in ("soft", "hard")
            and self.start in ("random", "teacher", "hebb")
            and not self.learn
            and not self.accelerate
            and math.isfinite(self.ensemble.eta_tilde)
        )

    @property
    def strong_id(self) -> str:
        """Hash (SHA-256) of all that defines a run of this task, the meaning of the algorithms included."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def canonical_json(self) -> str:
        """The definition as text, always the same text: keys sorted, nothing left to a default."""
        definition = self.to_dict() | {"meaning": _MEANING[self.draw]}
        del definition["runs"]
        return json.dumps(definition, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values only; an infinite η is written as the text "-inf"."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        values["ensemble"] = {
            name: value + 0.0 if math.isfinite(value) else str(value)  # one zero, without sign
            for name, value in self.ensemble.to_dict().items()
        }
        values["learn"] = list(self.learn)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Task:
        """Build the task that :meth:`to_dict` or :meth:`canonical_json` wrote."""
        plain = dict(values)
        meaning = plain.pop("meaning", None)
        try:
            ensemble = Ensemble(**{name: float(value) for name, value in plain.pop("ensemble").items()})
            task = cls(ensemble=ensemble, **plain)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"not the definition of a task: {error}") from error
        ours = _MEANING[task.draw]
        if meaning not in (None, ours):
            raise DataError(f"the task was written with meaning {meaning!r} of its runs; this is {ours}")
        return task

    def label(self) -> str:
        """A line that a person can read."""
        e = self.ensemble
        start = f" from {self.start}" if self.start else ""
        return (
            f"{self.learner}{start} N={self.n_features} alpha={self.alpha:g} eta={e.eta:g} gamma={e.gamma:g}"
        )


def grid(
    *,
    eta: float | Iterable[float],
    gamma: float | Iterable[float] = 10.0,
    gamma_tilde: float | None = None,
    eta_tilde: float | None = None,
    **settings: Any,
) -> list[Task]:
    """Every combination of the values given: any setting of a Task may be a list.

    >>> [t.ensemble.eta for t in grid(eta=[0.0, 2.0], learner="soft", n_features=100, alpha=20)]
    [0.0, 2.0]
    >>> len(grid(eta=[0.0, 2.0], learner=["soft", "hard"], n_features=[50, 100, 200], alpha=20))
    12
    """
    learn = settings.pop("learn", ())
    axes = {name: _several(value) for name, value in settings.items()}
    points = itertools.product(*axes.values(), _several(gamma), _several(eta))
    return [
        Task(
            ensemble=Ensemble(h, g, gamma_tilde, eta_tilde),  # type: ignore[arg-type]
            learn=learn,
            **dict(zip(axes, rest, strict=True)),
        )
        for *rest, g, h in points
    ]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
