"""Follow one branch through its folds as a parameter changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from outlearn.exceptions import ConvergenceError, ParameterError
from outlearn.model import Ensemble
from outlearn.model.checks import choice, finite, positive
from outlearn.numerics import Status
from outlearn.numerics.continuation import refine_folds, trace
from outlearn.theory.paths import LOGARITHMIC, OVER, Over, family, from_axis, to_axis
from outlearn.theory.results import SaddlePoint, to_frame
from outlearn.theory.search import search
from outlearn.theory.solve import Branch, make_results
from outlearn.theory.system import Learner, Points, system_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Path", "follow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A solution curve, in the order in which it was walked.

    Attributes
    ----------
    points : tuple of SaddlePoint
        Solved points; ``branch`` is "unstable" where the damped iteration could not stay.
    over : str
    values : tuple of float
        The parameter at each point; it turns at a fold.
    folds : tuple of SaddlePoint
        The spinodals on the way, solved from residual = 0 and a singular Jacobian.
    fold_values : tuple of float
    status : Status
        CONVERGED if the curve left the interval; OUT_OF_RANGE if the solution vanished inside it.
    """

    points: tuple[SaddlePoint, ...]
    over: str
    values: tuple[float, ...]
    folds: tuple[SaddlePoint, ...]
    fold_values: tuple[float, ...]
    status: Status

    def to_dict(self) -> dict[str, Any]:
        """Return the path and every point of it."""
        return {
            "over": self.over,
            "values": list(self.values),
            "fold_values": list(self.fold_values),
            "status": self.status.name,
            "points": [point.to_dict() for point in self.points],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table, one row per point."""
        return to_frame(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        folds = ", ".join(f"{x:.6g}" for x in self.fold_values) or "none"
        return (
            f"Path({len(self.points)} points over {self.over} from {self.values[0]:.6g} to "
            f"{self.values[-1]:.6g}, folds: {folds}, {self.status.name})"
        )


def follow(
    learner: Learner,
    ensemble: Ensemble,
    alpha: float = float("nan"),
    *,
    over: Over = "eta",
    start: float,
    stop: float,
    branch: Branch = "equilibrium",
    max_step: float = 0.3,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Follow the branch found at ``start`` until the parameter leaves [start, stop], through every fold.

    Pseudo-arclength continuation in (v, parameter), any of those that :func:`transitions` knows; all but the
    etas are walked by their logarithm. A matched learner stays matched over "eta" and "gamma". The trivial
    solution of hard selection has nothing to follow.

    >>> from outlearn import theory
    >>> path = follow(
    ...     theory.SoftSelection(), Ensemble(eta=0.0, gamma=10.0), alpha=20, over="eta", start=2.0, stop=5.0)
    >>> [round(x, 4) for x in path.fold_values]
    [3.9922, 3.7691]
    """
    choice("over", over, OVER)
    choice("branch", branch, get_args(Branch))
    checked = positive if over in LOGARITHMIC else finite
    start, stop = checked("start", start), checked("stop", stop)
    if start == stop:
        raise ParameterError("start", start, "another value than stop")
    max_step = positive("max_step", max_step)
    system = system_of(learner)
    base = Points.of(ensemble, start if over == "alpha" else positive("alpha", alpha))
    here = base.shifted(over, start)
    found = search(system, here)
    reachable = np.flatnonzero(found.sign >= 0)
    if not reachable.size:
        raise ConvergenceError(f"{learner!r} has no branch to follow at {over} = {start:g}")
    values = system.order_parameters(here.take(found.owner), found.v)["R"][reachable]
    energy = system.free_energy(here.take(found.owner), found.v)[reachable]
    pick = {"equilibrium": np.argmin(energy), "informative": np.argmax(values)}.get(branch, np.argmin(values))
    chosen = reachable[int(pick)]
    ends = to_axis(over, np.array([start, stop]))
    evaluate = family(system, base, over)
    (curve,) = trace(
        lambda v, t, rows: evaluate(v, t, np.zeros(len(v), dtype=np.int64)),
        found.v[chosen : chosen + 1],
        ends[:1],
        np.sign(ends[1:] - ends[:1]),
        (float(ends.min()), float(ends.max())),
        max_step=max_step,
        lowest=system.lowest,
        progress=progress,
    )
    t, v = curve.parameter.copy(), curve.v.copy()
    end = float(np.clip(t[-1], ends.min(), ends.max()))
    if end != t[-1] and len(t) > 1:  # the last step went past the end: come back onto it
        w = (end - t[-2]) / (t[-1] - t[-2])
        seed = (1.0 - w) * v[-2] + w * v[-1]
        last = search(
            system,
            base.shifted(over, from_axis(over, np.array([end]))),
            seeds=(seed[None], np.zeros(1, dtype=np.int64)),
            own_starts=False,
            nets=False,
        )
        if len(last.v):
            v[-1], t[-1] = last.v[0], end
    points = _results(learner, base, over, v, t)
    folds: list[SaddlePoint] = []
    where: tuple[float, ...] = ()
    if curve.folds.size:
        x = np.concatenate([curve.v, curve.parameter[:, None]], axis=1)
        solved, _, _ = refine_folds(evaluate, x[curve.folds], x[curve.folds + 1], np.zeros_like(curve.folds))
        folds = _results(learner, base, over, solved[:, :-1], solved[:, -1])
        where = tuple(float(y) for y in from_axis(over, solved[:, -1]))
    return Path(
        points=tuple(points),
        over=over,
        values=tuple(float(y) for y in from_axis(over, t)),
        folds=tuple(folds),
        fold_values=where,
        status=curve.status,
    )


def _results(
    learner: Learner, base: Points, over: str, v: NDArray[np.float64], t: NDArray[np.float64]
) -> list[SaddlePoint]:
    system = learner.system()
    at = base.take(np.zeros(len(t), dtype=np.int64)).shifted(over, from_axis(over, t))
    residual, jacobian = system.evaluate(at, v)
    sign = np.sign(np.linalg.det(jacobian)) * system.orientation
    return make_results(learner, at, v, np.abs(residual).max(axis=1), sign)
