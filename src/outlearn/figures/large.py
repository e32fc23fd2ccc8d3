"""Runs far beyond what fits into memory, drawn matrix-free, against exact theory digit by digit."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from outlearn import theory
from outlearn.figures.compare import THEORY, verdict
from outlearn.figures.plate import Agreement, Plate, Setting
from outlearn.figures.style import Book
from outlearn.model import Ensemble
from outlearn.numerics import gaussian_average
from outlearn.simulation import Dice, Task, grid
from outlearn.simulation.cost import dense_bytes
from outlearn.simulation.run import Streams, draw_truth, learn, measure, single_threaded
from outlearn.simulation.workers import executor

__all__ = ["adjusted", "draw"]

Array = NDArray[np.float64]

_QUANTITIES = ("R", "Q", "Phi")


def draw(setting: Setting) -> Plate:
    """Make the table: it has no figure."""
    tasks = grid(
        learner="soft",
        eta=(0.0, 2.0),
        alpha=20.0,
        n_features=setting.pick(100_000, 10_000, 500),
        runs=setting.pick(32, 12, 8),
        draw="matrix-free",
    )
    book = Book()
    rows, points = [], []
    for task in tasks:
        with executor(setting.workers) as (pool, _):
            made = list(pool.map(_run, [task] * task.runs, [setting.seed] * task.runs, range(task.runs)))
        values, luck, seconds, cpu = (np.array([run[k] for run in made]) for k in range(4))
        mean, error = adjusted(values, luck)
        point = _agreement(task, mean, error)
        points.append(point)
        row: dict[str, Any] = {
            "N": task.n_features,
            "P": task.n_samples,
            "η": task.ensemble.eta,
            "runs": task.runs,
            "seconds a run": round(float(np.median(seconds)), 1),
            "of processor time": round(float(np.median(cpu)), 1),
            "dense matrix would take (GB)": round(dense_bytes(task.n_features, task.n_samples) / 1e9, 1),
        }
        for k, name in enumerate(_QUANTITIES):
            row |= {
                f"{name} theory": f"{point.theory[name]:.6f}",
                f"{name} runs": f"{mean[k]:.6f} ± {error[k]:.6f}",
                f"{name} plain mean": f"{values[:, k].mean():.5f}",
            }
        rows.append(row)
        for k, name in enumerate(_QUANTITIES):
            book.write(f"η = {task.ensemble.eta:g}", f"{name}, each run", "runs", y=values[:, k])
            book.write(
                f"η = {task.ensemble.eta:g}",
                f"{name}, adjusted mean",
                "runs",
                y=mean[k],
                standard_error=error[k],
                theory=point.theory[name],
            )
    widest = max(abs(p.mean[name] - p.theory[name]) for p in points for name in _QUANTITIES)
    n = tasks[0].n_features
    return Plate(
        name="large",
        title="Matrix-free runs at large N",
        caption=f"Soft selection by EM at α = 20, N = {n}: the data matrix of "
        f"{rows[0]['dense matrix would take (GB)']} GB is never drawn, only what EM asks of it, by "
        "Gaussian conditioning. Means are adjusted for five accidents of a sample whose means are known "
        "exactly: how many examples are informative, and the sums of the weights that selection would give "
        "at B, alone and times the field, over informative examples and over outliers. Times are of a shared "
        "machine.",
        figure=None,
        book=book,
        agreement=points,
        table=rows,
        findings=[
            f"Means over {tasks[0].runs} runs at N = {n} differ from exact theory by at most {widest:.1e} "
            "in R, Q and Φ.",
            *verdict(points),
        ],
    )


def adjusted(values: Array, luck: Array) -> tuple[Array, Array]:
    """Means of the columns of ``values`` at vanishing luck, by regression on it, and their standard errors.

    >>> luck = np.array([[-1.0], [0.0], [3.0], [1.0]])
    >>> mean, error = adjusted(2.0 + 5.0 * luck, luck)
    >>> mean.round(6), error.round(6)
    (array([2.]), array([0.]))
    """
    design = np.column_stack([np.ones(len(luck)), luck])
    coefficients, *_ = np.linalg.lstsq(design, values, rcond=None)
    residual = values - design @ coefficients
    variance = (residual**2).sum(axis=0) / (len(values) - design.shape[1])
    return coefficients[0], np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])


def _run(task: Task, seed: int, index: int) -> tuple[list[float], list[float], float, float]:
    """R, Q, Φ of one run; its luck, of mean zero; seconds and processor seconds."""
    begin, used = time.monotonic(), time.process_time()
    streams = Streams.of(seed, task, index)
    with single_threaded():
        B = draw_truth(task.n_features, streams.truth)
        dice = Dice(task.ensemble, task.n_features, task.n_samples, streams.data, center=B)
        luck = _luck(task.ensemble, dice)
        record = measure(task, index, learn(task, dice, B, streams.start), dice, B)
    numbers = (record.R, record.Q, record.Phi)
    return (
        [math.nan if x is None else x for x in numbers],
        luck,
        time.monotonic() - begin,
        time.process_time() - used,
    )


def _luck(e: Ensemble, dice: Dice) -> list[float]:
    """What a sample has by accident: means over its examples, seen along B, less what they are on average.

    They are what moves R and Q most: with them known, the rest of a run's deviation is several times smaller.
    """
    informative = dice.informative
    field = dice.fields(dice.center[None, :] / math.sqrt(dice.shape[1]))[:, 0]
    weight = _weight(e, field)
    out = [float(informative.mean()) - e.informative_fraction]
    for mine, part, V in (
        (informative, e.informative_fraction, 1.0),
        (~informative, e.outlier_fraction, 0.0),
    ):

        def expected(x: Array, V: float = V) -> Array:
            h = V + x / math.sqrt(e.gamma)
            return np.stack([_weight(e, h), _weight(e, h) * h])

        seen = np.array([weight @ mine, (weight * field) @ mine]) / mine.size
        out += (seen - part * gaussian_average(expected).value).tolist()
    return out


def _weight(e: Ensemble, field: Array) -> Array:
    """Weight that soft selection gives to examples of this field at J = B."""
    return np.asarray(expit(e.gamma_tilde * (field - 0.5) - e.eta_tilde))


def _agreement(task: Task, mean: Array, error: Array) -> Agreement:
    exact = theory.solve(THEORY[task.learner], task.ensemble, task.alpha)
    numbers = {"R": exact.R, "Q": exact.Q, "Phi": exact.angle}
    return Agreement(
        learner=task.learner,
        start=task.start or "-",
        n_features=task.n_features,
        alpha=task.alpha,
        eta=task.ensemble.eta,
        runs=task.runs,
        zone="outside",
        branch=exact.branch,
        at_eigenvalue=exact.at_eigenvalue,
        theory=numbers,
        mean=dict(zip(_QUANTITIES, mean.tolist(), strict=True)),
        error=dict(zip(_QUANTITIES, error.tolist(), strict=True)),
    )
