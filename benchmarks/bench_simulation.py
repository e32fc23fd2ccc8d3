"""Campaigns: runs per second against a loop over GaussianMixture, and how much of it is drawing normals."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks import Row, interleaved
from outlearn.model import Ensemble
from outlearn.simulation import Campaign, Task
from outlearn.simulation.run import make_runs

GAMMA, N, P = 10.0, 100, 2000
RUNS = 16


def rows() -> Iterator[Row]:
    for eta in (0.0, 2.0):
        yield from _against_mixture(eta)
    yield from _normals()
    yield from _matrix_free()


def _task(eta: float, draw: str = "auto", dtype: str = "float64") -> Task:
    return Task(
        learner="soft",
        ensemble=Ensemble(eta, GAMMA),
        n_features=N,
        alpha=P / N,
        runs=2000,
        tol=1e-6,
        draw=draw,
        dtype=dtype,
    )


def _mixture_loop(eta: float) -> None:
    """The same runs as a loop anyone would write: numpy's normals, two spherical components."""
    rng = np.random.default_rng(0)
    outliers = 1.0 / (1.0 + np.exp(-eta))
    for _ in range(RUNS):
        data = rng.normal(size=(P, N)) / np.sqrt(GAMMA)
        center = rng.normal(size=N)
        data[rng.random(P) > outliers] += center / np.linalg.norm(center)
        GaussianMixture(
            2,
            covariance_type="spherical",
            weights_init=[outliers, 1.0 - outliers],
            means_init=[np.zeros(N), rng.normal(size=N) / np.sqrt(N)],
            precisions_init=[GAMMA, GAMMA],
            tol=1e-9,
            max_iter=5000,
        ).fit(data)


def _against_mixture(eta: float) -> Iterator[Row]:
    what = "GaussianMixture loop / campaign"
    size = f"soft EM, N={N} P={P}, eta={eta:g}, random start"
    for task in (_task(eta, "dense"), _task(eta)):
        make_runs(task, 0, [0])  # compiled, or read from the cache

        def runs(task: Task = task) -> None:
            make_runs(task, 0, range(RUNS))

        ours, theirs = interleaved(runs, lambda: _mixture_loop(eta), repeats=4)
        yield Row(
            what=f"{what}, one process, {task.draw}",
            ratio=theirs / ours,
            aim=">= 30" if task.draw != "dense" else "",
            detail=f"{size}: {RUNS / ours:.0f} runs/s against {RUNS / theirs:.1f}",
        )
    # a whole campaign, with its store and the start of its processes, which 2000 runs must carry
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        Campaign(task, seed=1).run(f"{folder}/runs.sqlite", workers=None)
        whole = (time.perf_counter() - begin) / task.runs
    yield Row(
        what=f"{what}, {os.cpu_count()} processes",
        ratio=theirs / RUNS / whole,
        aim=">= 30",
        detail=f"{size}: 2000 runs with store and start-up, {1 / whole:.0f} runs/s",
    )


def _normals() -> Iterator[Row]:
    stream = np.random.Generator(np.random.SFC64(0))
    for dtype in ("float64", "float32"):
        task, block = _task(0.0, "dense", dtype), np.empty((P, N), dtype)

        def normals(block: np.ndarray = block) -> None:
            for _ in range(RUNS):
                stream.standard_normal(out=block, dtype=block.dtype.type)

        whole, drawn = interleaved(lambda task=task: make_runs(task, 0, range(RUNS)), normals)
        yield Row(
            what=f"share of a dense run that draws normals, {dtype}",
            ratio=drawn / whole,
            aim="dominates",
            detail=f"N={N} P={P}, eta=0; {RUNS / drawn:.0f} runs/s is the most that this stream allows",
        )


def _matrix_free() -> Iterator[Row]:
    """The two ways to draw where both fit, and the size that only one of them reaches."""
    ensemble = Ensemble(0.0, GAMMA)
    for n, alpha in ((1000, 20.0), (2000, 20.0)):
        dense, free = (
            Task(learner="soft", ensemble=ensemble, n_features=n, alpha=alpha, tol=1e-6, draw=draw)
            for draw in ("dense", "matrix-free")
        )
        slow, fast = interleaved(
            lambda task=dense: make_runs(task, 0, [0]), lambda task=free: make_runs(task, 0, [0]), repeats=2
        )
        yield Row(
            what="dense run / matrix-free run",
            ratio=slow / fast,
            detail=f"N={n} P={round(alpha * n)}: {fast:.2f} s matrix-free",
        )
    large = Task(learner="soft", ensemble=ensemble, n_features=100_000, alpha=20.0, tol=1e-6)
    begin = time.perf_counter()
    make_runs(large, 0, [0])
    seconds = time.perf_counter() - begin
    stream = np.random.Generator(np.random.SFC64(0))
    block = np.empty(10_000_000)
    begin = time.perf_counter()
    stream.standard_normal(out=block)
    normals = (time.perf_counter() - begin) * large.n_features * large.n_samples / block.size
    yield Row(
        what="drawing the normals of a dense run / matrix-free run",
        ratio=normals / seconds,
        detail=f"N=100000 P=2000000 (1.6 TB dense): {seconds:.1f} s matrix-free",
    )
