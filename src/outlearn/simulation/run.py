"""Make runs: draw the data, start the algorithm, measure what it found against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from outlearn.exceptions import OutlearnError
from outlearn.inference.amp import AmpResult, amp
from outlearn.inference.hard import hard_em
from outlearn.inference.hebb import hebb
from outlearn.inference.results import FitResult
from outlearn.inference.rows import Reads, Rows
from outlearn.inference.soft import soft_em
from outlearn.model import overlaps, sample
from outlearn.simulation.dice import Dice
from outlearn.simulation.statistics import CONVERGED, FAILED, RunRecord
from outlearn.simulation.task import Task

__all__ = ["draw", "learn", "make_runs", "measure", "single_threaded", "streams"]

Array = NDArray[np.float64]


def streams(seed: int, task: Task, index: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Two streams of one run, for its data and for its start: they depend on nothing but these three."""
    root = np.random.SeedSequence(seed, spawn_key=(int(task.strong_id, 16), index))
    data, start = (np.random.default_rng(child) for child in root.spawn(2))
    return data, start


def draw(task: Task, rng: np.random.Generator) -> tuple[Reads, Array, NDArray[np.bool_]]:
    """Draw the data of one run, dense or matrix-free: what the learner reads, and the hidden B and V."""
    if task.draw == "matrix-free":
        dice = Dice(task.ensemble, task.n_features, task.n_samples, rng)
        return dice, dice.center, dice.informative
    data = sample(task.ensemble, task.n_features, task.n_samples, rng, dtype=np.dtype(task.dtype))
    return Rows.of(data.X, signs=data.y), data.center, data.informative


def make_runs(task: Task, seed: int, indices: Sequence[int]) -> list[RunRecord]:
    """Make these runs of a task, each from its own streams; an error of the library is a failed run.

    Linear algebra is held to one thread: sums in another order would change the last digits.

    >>> from outlearn.model import Ensemble
    >>> task = Task(learner="hebb", ensemble=Ensemble(eta=0.0, gamma=10.0), n_features=50, alpha=2)
    >>> [round(run.R, 2) for run in make_runs(task, 0, [0, 1])] == [
    ...     round(run.R, 2) for index in (0, 1) for run in make_runs(task, 0, [index])]
    True
    """
    with single_threaded():
        return [_one(task, seed, index) for index in indices]


def single_threaded() -> Any:
    """Context in which linear algebra keeps to one thread."""
    return _pools().limit(limits=1)


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def _one(task: Task, seed: int, index: int) -> RunRecord:
    data_stream, start_stream = streams(seed, task, index)
    try:
        reads, B, _ = draw(task, data_stream)
        fit = learn(task, reads, B, start_stream)
        return measure(task, index, fit, reads, B)
    except OutlearnError as error:
        return RunRecord(index=index, status=f"{FAILED}: {type(error).__name__}: {error}")


def learn(
    task: Task, reads: Reads, B: Array, rng: np.random.Generator, start: Array | None = None
) -> FitResult | AmpResult:
    """Run the task's learner on data, from its own start or from a given centre c = J/√N."""
    e = task.ensemble
    known: dict[str, Any] = {"noise_variance": 1.0 / e.gamma_tilde}
    if task.learner == "hebb":
        return hebb(reads, **known)
    known["contamination"] = _contamination(e.eta_tilde)
    settings = known | {"learn": task.learn, "max_iter": task.max_iter, "tol": task.tol}
    begin = _start(task, reads, B, known, rng) if start is None else start
    if task.learner == "amp":
        return amp(reads, start=begin, rng=rng, **settings)
    em = soft_em if task.learner == "soft" else hard_em
    return em(reads, start=begin, n_init=1, accelerate=task.accelerate, rng=rng, **settings)


def _start(
    task: Task, reads: Reads, B: Array, known: dict[str, Any], rng: np.random.Generator
) -> str | Array:
    """The centre c = J/√N where the run begins, or the name of a start that the algorithm knows itself."""
    scale = 1.0 / math.sqrt(task.n_features)
    match task.start:
        case "random":
            return scale * rng.standard_normal(task.n_features)
        case "teacher":
            return scale * B
        case "amp":
            return amp(reads, rng=rng, **known).center
        case name:
            assert name is not None  # the Hebbian learner never comes here
            return name


def _contamination(eta: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -eta)))


def measure(task: Task, index: int, fit: FitResult | AmpResult, reads: Reads, B: Array) -> RunRecord:
    """Compare what was found with the truth B."""
    R, Q = overlaps(math.sqrt(task.n_features) * fit.center, B)
    return RunRecord(
        index=index,
        status=CONVERGED if fit.converged else fit.status.name.lower().replace("_", " "),
        R=R,
        Q=Q,
        z=_response(task, fit, R, Q),
        energy=_energy(task, fit, reads),
        iterations=fit.n_iter,
        data_reads=reads.n_reads,
    )


def _energy(task: Task, fit: FitResult | AmpResult, reads: Reads) -> float:
    """Energy per dimension without what depends on the data only: the theory's free energy f at T = 0.

    Left out are the labels, the noise's own Gaussian, the prior's normalisation, and P ln p0.
    """
    p, n = reads.shape
    eta = _eta(fit.contamination)
    selection = 0.0 if math.isinf(eta) else -float(p * np.logaddexp(0.0, -eta))
    if isinstance(fit, AmpResult):
        return (fit.free_energy + selection) / n
    noise = fit.noise_variance
    constants = p * math.log(2.0) + 0.5 * p * n * math.log(2.0 * math.pi * noise)
    constants += 0.5 * float(reads.square_norms().sum()) / noise
    if task.learner != "hard" and "center_variance" not in task.learn:
        constants += 0.5 * n * math.log(2.0 * math.pi)
    return (fit.energy - constants + selection) / n


def _eta(contamination: float) -> float:
    return math.log(contamination) - math.log1p(-contamination) if contamination > 0.0 else -math.inf


def _response(task: Task, fit: FitResult | AmpResult, R: float, Q: float) -> float | None:
    """z = β(Q - q) by the second saddle-point equation, Q - R² = z² γ̃²/γ Σ<V>²/N; for MAP estimates only."""
    if isinstance(fit, AmpResult):
        return None
    square = float(fit.inlier_proba @ fit.inlier_proba) / (task.n_features * fit.noise_variance**2)
    if not square > 0.0:
        return None
    return math.sqrt(max(Q - R * R, 0.0) * task.ensemble.gamma / square)
