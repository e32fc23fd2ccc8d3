"""Make runs: draw the data, start the algorithm, measure what it found against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from outlearn.exceptions import OutlearnError
from outlearn.inference.amp import AmpResult, AmpStatus, amp
from outlearn.inference.hard import hard_em
from outlearn.inference.hebb import hebb
from outlearn.inference.many import ManyFits, hard_em_many, soft_em_many
from outlearn.inference.results import FitResult, FitStatus
from outlearn.inference.rows import Reads, Rows
from outlearn.inference.soft import soft_em
from outlearn.model import Dataset, overlaps, sample
from outlearn.simulation.cost import is_small
from outlearn.simulation.dice import Dice
from outlearn.simulation.dice_many import MatrixFreeEM
from outlearn.simulation.statistics import CONVERGED, FAILED, RunRecord
from outlearn.simulation.task import Task

__all__ = ["Streams", "draw", "draw_truth", "learn", "make_runs", "measure", "single_threaded"]

Array = NDArray[np.float64]


class Streams(NamedTuple):
    """Random streams of one run; they depend on the seed, the task and the index, and on nothing else."""

    truth: np.random.Generator
    data: np.random.Generator
    start: np.random.Generator

    @classmethod
    def of(cls, seed: int, task: Task, index: int) -> Streams:
        """Make them."""
        root = np.random.SeedSequence(seed, spawn_key=(_number(task), index))
        return cls(*(np.random.default_rng(child) for child in root.spawn(3)))


@lru_cache(maxsize=64)
def _number(task: Task) -> int:
    return int(task.strong_id, 16)


def draw_truth(n_features: int, rng: np.random.Generator) -> Array:
    """B, uniform on the sphere |B|² = N."""
    B = rng.standard_normal(n_features)
    return B * (math.sqrt(n_features) / np.linalg.norm(B))


def draw(task: Task, B: Array, rng: np.random.Generator) -> Reads:
    """Draw the data of one run, dense or matrix-free."""
    if task.draw == "matrix-free":
        return Dice(task.ensemble, task.n_features, task.n_samples, rng, center=B)
    data = _sample(task, B, rng)
    return Rows.of(data.X, signs=data.y)


def _sample(task: Task, B: Array, rng: np.random.Generator) -> Dataset:
    dtype = np.dtype(task.dtype)
    return sample(task.ensemble, task.n_features, task.n_samples, rng, dtype=dtype, center=B)


def make_runs(task: Task, seed: int, indices: Sequence[int]) -> list[RunRecord]:
    """Make these runs of a task, each from its own streams; an error of the library is a failed run.

    Linear algebra is held to one thread: sums in another order would change the last digits.

    >>> from outlearn.model import Ensemble
    >>> task = Task(learner="hebb", ensemble=Ensemble(eta=0.0, gamma=10.0), n_features=50, alpha=2)
    >>> make_runs(task, 0, [0, 1]) == make_runs(task, 0, [0]) + make_runs(task, 0, [1])
    True
    """
    sizes = task.n_features, task.n_samples
    with single_threaded():
        if not task.is_plain_em or (task.draw == "matrix-free" and not is_small(*sizes)):
            return [_one(task, seed, index) for index in indices]
        try:
            return (_dense_runs if task.draw == "dense" else _matrix_free_runs)(task, seed, indices)
        except OutlearnError as error:
            if len(indices) == 1:
                return [_failure(indices[0], error)]
        return [record for index in indices for record in make_runs(task, seed, [index])]


def single_threaded() -> Any:
    """Context in which linear algebra keeps to one thread."""
    return _pools().limit(limits=1)


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def _one(task: Task, seed: int, index: int) -> RunRecord:
    streams = Streams.of(seed, task, index)
    try:
        B = draw_truth(task.n_features, streams.truth)
        reads = draw(task, B, streams.data)
        fit = learn(task, reads, B, streams.start)
        return measure(task, index, fit, reads, B)
    except OutlearnError as error:
        return _failure(index, error)


def _failure(index: int, error: OutlearnError) -> RunRecord:
    return RunRecord(index=index, status=f"{FAILED}: {type(error).__name__}: {error}")


def _dense_runs(task: Task, seed: int, indices: Sequence[int]) -> list[RunRecord]:
    """Many small problems in one call of the compiled loop."""
    n, p = task.n_features, task.n_samples
    streams = [Streams.of(seed, task, index) for index in indices]
    truths = [draw_truth(n, s.truth) for s in streams]
    square_sums = np.zeros(len(indices))

    def fill(run: int, X: NDArray[Any], y: Array) -> None:
        data = _sample(task, truths[run], streams[run].data)
        X[...], y[...] = data.X, data.y
        square_sums[run] = np.einsum("ij,ij->", X, X, dtype=np.float64)

    start: str | Array = "hebb"
    if task.start != "hebb":
        start = np.array(
            [_given_start(task, B, s.start) for B, s in zip(truths, streams, strict=True)], dtype=np.float64
        )
    many: Any = soft_em_many if task.learner == "soft" else hard_em_many
    fits: ManyFits = many(
        fill,
        shape=(len(indices), p, n),
        dtype=np.dtype(task.dtype),
        init=start,
        keep_proba=True,
        max_iter=task.max_iter,
        tol=task.tol,
        **_known(task),
    )
    assert fits.inlier_probas is not None
    return [
        _record(
            task,
            index,
            center=fits.centers[k],
            B=truths[k],
            status=fits.status[k],
            square=float(fits.inlier_probas[k] @ fits.inlier_probas[k]),
            energy=_energy_per_dimension(task, fits.energies[k], square_sums[k], _known(task)),
            iterations=int(fits.n_iter[k]),
            data_reads=int(fits.n_iter[k]) + 1 + (task.start == "hebb"),
        )
        for k, index in enumerate(indices)
    ]


def _matrix_free_runs(task: Task, seed: int, indices: Sequence[int]) -> list[RunRecord]:
    """One compiled run after the other."""
    n, hard = task.n_features, task.learner == "hard"
    em = MatrixFreeEM(task.ensemble, n, task.n_samples, hard=hard, tol=task.tol, max_iter=task.max_iter)
    out = []
    for index in indices:
        streams = Streams.of(seed, task, index)
        B = draw_truth(n, streams.truth)
        start = None if task.start == "hebb" else _given_start(task, B, streams.start)
        fit = em.run(B, streams.data, start)
        status = FitStatus.of(
            converged=fit.residual <= task.tol,
            kept=fit.total_weight,
            square=float(fit.center @ fit.center),
            n_features=n,
            noise_variance=1.0 / task.ensemble.gamma_tilde,
        )
        out.append(
            _record(
                task,
                index,
                center=fit.center,
                B=B,
                status=status,
                square=fit.square,
                energy=fit.energy / n - (0.0 if hard else 0.5 * math.log(2.0 * math.pi)),
                iterations=fit.n_iter,
                data_reads=fit.n_iter + 1 + (start is None),
            )
        )
    return out


def learn(
    task: Task, reads: Reads, B: Array, rng: np.random.Generator, start: Array | None = None
) -> FitResult | AmpResult:
    """Run the task's learner on data, from its own start or from a given centre c = J/√N."""
    known = _known(task)
    if task.learner == "hebb":
        return hebb(reads, noise_variance=known["noise_variance"])
    settings: dict[str, Any] = known | {"learn": task.learn, "max_iter": task.max_iter, "tol": task.tol}
    begin = _start(task, reads, B, known, rng) if start is None else start
    if task.learner == "amp":
        return amp(reads, init=begin, rng=rng, **settings)
    em = soft_em if task.learner == "soft" else hard_em
    return em(reads, init=begin, n_init=1, accelerate=task.accelerate, rng=rng, **settings)


def _start(
    task: Task, reads: Reads, B: Array, known: dict[str, Any], rng: np.random.Generator
) -> str | Array:
    """The centre c = J/√N where the run begins, or the name of a start that the algorithm knows itself."""
    match task.start:
        case "random" | "teacher":
            return _given_start(task, B, rng)
        case "amp":
            return amp(reads, rng=rng, **known).center
        case name:
            assert name is not None  # the Hebbian learner never comes here
            return name


def _given_start(task: Task, B: Array, rng: np.random.Generator) -> Array:
    J = rng.standard_normal(task.n_features) if task.start == "random" else B
    return J / math.sqrt(task.n_features)


def _known(task: Task) -> dict[str, float]:
    """What the learner believes, in raw units."""
    e = task.ensemble
    contamination = float(np.exp(-np.logaddexp(0.0, -e.eta_tilde)))
    return {"contamination": contamination, "noise_variance": 1.0 / e.gamma_tilde}


def measure(task: Task, index: int, fit: FitResult | AmpResult, reads: Reads, B: Array) -> RunRecord:
    """Compare what was found with the truth B."""
    beliefs = {"contamination": fit.contamination, "noise_variance": fit.noise_variance}
    if isinstance(fit, AmpResult):
        square = None
        energy = (fit.free_energy + _selection_constant(task, fit.contamination)) / task.n_features
    else:
        square = float(fit.inlier_proba @ fit.inlier_proba)
        energy = _energy_per_dimension(task, fit.energy, float(reads.square_norms().sum()), beliefs)
    return _record(
        task,
        index,
        center=fit.center,
        B=B,
        status=fit.status,
        square=square,
        energy=energy,
        iterations=fit.n_iter,
        data_reads=reads.n_reads,
        noise_variance=fit.noise_variance,
    )


def _record(
    task: Task,
    index: int,
    *,
    center: Array,
    B: Array,
    status: FitStatus | AmpStatus,
    square: float | None,
    noise_variance: float | None = None,
    **rest: Any,
) -> RunRecord:
    R, Q = overlaps(math.sqrt(task.n_features) * center, B)
    precision = task.ensemble.gamma_tilde if noise_variance is None else 1.0 / noise_variance
    return RunRecord(
        index=index,
        status=CONVERGED if status.converged else status.name.lower().replace("_", " "),
        R=R,
        Q=Q,
        z=None if not square else _response(task, R, Q, square, precision),
        **rest,
    )


def _response(task: Task, R: float, Q: float, square: float, precision: float) -> float:
    """z = β(Q - q) of a MAP estimate by the second saddle-point equation, Q - R² = z² γ̃²/γ Σ<V>²/N."""
    scale = precision**2 * square / (task.ensemble.gamma * task.n_features)
    return math.sqrt(max(Q - R * R, 0.0) / scale)


def _energy_per_dimension(task: Task, energy: float, square_sum: float, beliefs: dict[str, float]) -> float:
    """Training energy per dimension without what depends on the data only: the theory's f at T = 0.

    Left out are the labels, the noise's own Gaussian, the prior's normalisation, and P ln p0.
    """
    p, n, noise = task.n_samples, task.n_features, beliefs["noise_variance"]
    constants = p * math.log(2.0) + 0.5 * p * n * math.log(2.0 * math.pi * noise) + 0.5 * square_sum / noise
    if task.learner != "hard" and "center_variance" not in task.learn:
        constants += 0.5 * n * math.log(2.0 * math.pi)
    return (energy - constants + _selection_constant(task, beliefs["contamination"])) / n


def _selection_constant(task: Task, contamination: float) -> float:
    """P ln p0, which the energies hold and f does not; nothing where there are no outliers."""
    return task.n_samples * math.log(contamination) if contamination > 0.0 else 0.0
