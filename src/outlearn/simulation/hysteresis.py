"""Hysteresis: follow one minimum while the outliers become more and then fewer again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outlearn.exceptions import ParameterError
from outlearn.inference.rows import Rows
from outlearn.model import Ensemble, sample
from outlearn.model.checks import choice, count, numbers
from outlearn.simulation.run import learn, measure, single_threaded
from outlearn.simulation.statistics import RunRecord, TaskStats
from outlearn.simulation.task import Task
from outlearn.simulation.workers import executor

__all__ = ["HysteresisLoop", "hysteresis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HysteresisLoop:
    """What was found on the way up in η and on the way back.

    Attributes
    ----------
    etas : tuple of float
        In rising order.
    up, down : tuple of TaskStats
        Statistics over samples at each η, both in the order of ``etas``.
    jumps_up, jumps_down : tuple of float
        η of the largest change of R between neighbours, one a sample: where that minimum was lost, and
        where it was found again.
    """

    task: Task
    etas: tuple[float, ...]
    up: tuple[TaskStats, ...]
    down: tuple[TaskStats, ...]
    jumps_up: tuple[float, ...]
    jumps_down: tuple[float, ...]

    @property
    def width(self) -> float:
        """Mean distance between the two jumps."""
        return float(np.mean(self.jumps_up) - np.mean(self.jumps_down))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: one row for each direction and η."""
        rows = [
            {"direction": direction, "eta": eta} | stats.to_dict()
            for direction, branch in (("up", self.up), ("down", self.down))
            for eta, stats in zip(self.etas, branch, strict=True)
        ]
        return {"jumps_up": list(self.jumps_up), "jumps_down": list(self.jumps_down), "rows": rows}

    def to_frame(self) -> Any:
        """Return a pandas table, one row for each direction and η."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["rows"])

    def __repr__(self) -> str:
        return (
            f"HysteresisLoop({self.task.label()}, {len(self.jumps_up)} samples: R jumps at "
            f"eta {np.mean(self.jumps_up):.3g} on the way up, {np.mean(self.jumps_down):.3g} on the way down)"
        )


def hysteresis(
    ensemble: Ensemble,
    etas: Iterable[float],
    *,
    n_features: int,
    alpha: float,
    learner: str = "soft",
    start: str = "teacher",
    samples: int = 10,
    seed: int = 0,
    max_iter: int = 5000,
    tol: float = 1e-8,
    workers: int | None = 1,
) -> HysteresisLoop:
    """Warm-start a learner along η, up and back down, on data whose noise stays the same.

    A sample fixes B, the noise, and a uniform number for each example; the example is informative while
    that number is below 1/(1 + e^η). So from one η to the next only the examples that cross over change,
    and a minimum can be followed. The first fit is from ``start``; every later one is from where the last
    one ended.

    Parameters
    ----------
    ensemble : Ensemble
        Its η is replaced; a learner that knows η goes on knowing it.
    etas : values of η
        Sorted before use.
    n_features, alpha, learner, start, max_iter, tol
        As in :class:`~outlearn.simulation.task.Task`.
    samples : int
        Independent samples.
    seed : int
        Sample k has its own stream of (seed, k), whatever the number of workers.

    Examples
    --------
    >>> loop = hysteresis(Ensemble(0.0, 10.0), [0.0, 2.0], n_features=50, alpha=5, samples=2)
    >>> [round(stats.R.mean, 1) for stats in loop.up]
    [0.9, 0.7]
    """
    if not isinstance(ensemble, Ensemble):
        raise ParameterError("ensemble", ensemble, "an Ensemble")
    given = list(etas) if isinstance(etas, Iterable) else etas
    grid = np.unique(numbers("etas", given, "two values or more", lambda x: np.ptp(x) > 0.0)).tolist()
    choice("start", start, ("random", "hebb", "teacher", "amp"))
    samples, seed = count("samples", samples), count("seed", seed, least=0)
    tasks = [
        Task(
            learner=learner,
            ensemble=ensemble.replace(eta=eta),
            n_features=n_features,
            alpha=alpha,
            runs=samples,
            start=start,
            max_iter=max_iter,
            tol=tol,
            draw="dense",
        )
        for eta in grid
    ]
    with executor(workers) as (pool, _):
        loops = list(pool.map(_follow, [tasks] * samples, [seed] * samples, range(samples)))
    up, down = (
        tuple(TaskStats.of(task.strong_id, [loop[way][k] for loop in loops]) for k, task in enumerate(tasks))
        for way in (0, 1)
    )
    return HysteresisLoop(
        task=tasks[0],
        etas=tuple(grid),
        up=up,
        down=down,
        jumps_up=tuple(_jump(grid, loop[0]) for loop in loops),
        jumps_down=tuple(_jump(grid, loop[1]) for loop in loops),
    )


def _follow(tasks: list[Task], seed: int, index: int) -> tuple[list[RunRecord], list[RunRecord]]:
    """One sample, up and down; both in the order of rising η."""
    data_stream, start_stream, selection_stream = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed, spawn_key=(index,)).spawn(3)
    )
    first = tasks[0]
    n, p = first.n_features, first.n_samples
    # everything informative, then the truth taken away: what is left is the noise alone
    everyone = sample(first.ensemble.replace(eta=-math.inf), n, p, data_stream)
    B = everyone.center
    X: NDArray[np.float64] = everyone.X * everyone.y[:, None].astype(np.float64)
    threshold = selection_stream.random(p)
    informative = np.ones(p, dtype=bool)

    center = None
    ways: list[list[RunRecord]] = []
    with single_threaded():
        for path in (tasks, tasks[::-1]):
            records = []
            for task in path:
                informative = _select(X, B, informative, threshold < task.ensemble.informative_fraction)
                reads = Rows.of(X)
                fit = learn(task, reads, B, start_stream, center)
                center = fit.center
                records.append(measure(task, index, fit, reads, B))
            ways.append(records)
    return ways[0], ways[1][::-1]


def _select(
    X: NDArray[np.float64], B: NDArray[np.float64], before: NDArray[np.bool_], after: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Add the truth to the rows that become informative, take it from those that cease to be."""
    shift = B / math.sqrt(B.size)
    X[after & ~before] += shift
    X[before & ~after] -= shift
    return after


def _jump(etas: list[float], records: list[RunRecord]) -> float:
    R = np.array([record.R for record in records], dtype=float)
    k = int(np.argmax(np.abs(np.diff(R))))
    return 0.5 * (etas[k] + etas[k + 1])
