"""Inference: one EM pass against a plain read, many starts against one, and what each shortcut saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from numba import njit

from benchmarks import Row, interleaved
from outlearn.inference.gram import Reduction
from outlearn.inference.many import hard_em_many, soft_em_many
from outlearn.inference.rows import Rows
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, sample


@njit(nogil=True, fastmath=True)
def _read(x: Any) -> Any:
    """Sum of all numbers in their own precision: as fast as one thread reads."""
    total = x[0] * 0
    for i in range(x.size):
        total += x[i]
    return total


def rows() -> Iterator[Row]:
    yield from one_pass()
    yield from many_starts()
    yield from acceleration()
    yield from reduced_form()
    yield from many_problems()


def one_pass() -> Iterator[Row]:
    for p, n in ((20_000, 2000), (200_000, 200)):
        for dtype in (np.float64, np.float32):
            X = np.random.default_rng(0).standard_normal((p, n), dtype=dtype)
            y = np.where(np.arange(p) % 2, 1.0, -1.0)
            works = _passes(X, y)
            for work in works:
                work()
            read, soft, hard, two, numpy_pass = interleaved(*works, repeats=9)
            size = f"P={p} N={n} {np.dtype(dtype).name}, read {X.nbytes / read / 1e9:.0f} GB/s"
            yield Row(what="plain read / soft pass", ratio=read / soft, aim=">= 0.8", detail=size)
            yield Row(what="plain read / hard pass", ratio=read / hard, aim=">= 0.8", detail=size)
            yield Row(what="two numpy passes / soft pass", ratio=numpy_pass / soft, detail=size)
            yield Row(what="soft pass, one thread / two threads", ratio=soft / two, detail=size)


def _passes(X: Any, y: Any) -> list[Callable[[], object]]:
    """Work to compare: a plain read, our passes, and the two products of numpy."""
    n = X.shape[1]
    D, one, offset = np.full((1, n), 1.0 / n), np.ones(1), -np.ones(1)
    direction, flat = D[0].astype(X.dtype), X.reshape(-1)
    data, threaded = Rows.of(X, y), Rows.of(X, y, n_threads=2)
    return [
        lambda: _read(flat),
        lambda: data.select(D, one, offset, hard=False),
        lambda: data.select(D, one, offset, hard=True),
        lambda: threaded.select(D, one, offset, hard=False),
        lambda: (y / (1 + np.exp(1 - y * (X @ direction)))).astype(X.dtype) @ X,
    ]


def many_starts() -> Iterator[Row]:
    for p, n in ((20_000, 1000), (100_000, 200)):
        for dtype in (np.float64, np.float32):
            data = sample(Ensemble(eta=1.0, gamma=10.0), n, p, rng=0, dtype=dtype)
            starts = np.random.default_rng(1).standard_normal((32, n)) / np.sqrt(n)
            belief = {"contamination": 0.73, "noise_variance": 0.1, "max_iter": 12, "tol": 1e-5}
            works = [
                lambda s=s, data=data, belief=belief: soft_em(data.X, data.y, init=s, **belief)
                for s in (starts, starts[:1])
            ]
            all_of_them, one = interleaved(*works, repeats=3)
            detail = f"P={p} N={n} {np.dtype(dtype).name}, whole fits"
            yield Row(what="32 starts / 1 start", ratio=all_of_them / one, aim="< 6", detail=detail)


def acceleration() -> Iterator[Row]:
    for eta in (0.0, 2.0, 3.0, 4.0):
        ensemble = Ensemble(eta=eta, gamma=10.0)
        reads = {False: 0, True: 0}
        for seed in range(4):
            data = sample(ensemble, 200, 4000, rng=seed)
            for accelerate in reads:
                for start in ("hebb", "random"):
                    fit = soft_em(
                        data.X,
                        data.y,
                        contamination=ensemble.outlier_fraction,
                        noise_variance=0.1,
                        init=start,
                        n_init=1,
                        rng=seed,
                        accelerate=accelerate,
                        tol=1e-8,
                        max_iter=20_000,
                    )
                    reads[accelerate] += fit.n_iter
        detail = f"alpha=20 gamma=10 N=200 eta={eta:g} to 1e-8; accelerated {reads[True] / 8:.0f} on average"
        yield Row(what="passes, plain EM / accelerated", ratio=reads[False] / reads[True], detail=detail)


def reduced_form() -> Iterator[Row]:
    data = sample(Ensemble(eta=0.0, gamma=40.0), 20_000, 500, rng=0)
    belief = {"contamination": 0.5, "noise_variance": 0.025, "tol": 1e-8, "rng": 0}

    def direct() -> None:
        with mock.patch.object(Reduction, "patience", return_value=None):
            soft_em(data.X, data.y, **belief, **options)

    for name, options in (("hebb start", {"init": "hebb"}), ("8 starts", {})):
        slow, fast = interleaved(direct, lambda o=options: soft_em(data.X, data.y, **belief, **o), repeats=3)
        detail = f"P=500 N=20000, whole fits, {name}"
        yield Row(what="rows / inner products", ratio=slow / fast, detail=detail)


def many_problems() -> Iterator[Row]:
    runs, p, n = 200, 2000, 100
    made = [sample(Ensemble(eta=1.0, gamma=10.0), n, p, rng=k) for k in range(runs)]
    y = np.array([d.y for d in made])
    belief = {"contamination": 0.731, "noise_variance": 0.1, "tol": 1e-8}
    for dtype in (np.float64, np.float32):
        X = np.array([d.X for d in made], dtype=dtype)

        def loop(X: Any = X) -> None:
            for k in range(runs):
                _numpy_em(X[k] * y[k][:, None].astype(X.dtype))

        def fits(many: Any, threads: int, X: Any = X, **extra: Any) -> Any:
            return lambda: many(X, y, n_threads=threads, **belief, **extra)

        works = [fits(soft_em_many, 1), fits(soft_em_many, 2), fits(soft_em_many, 1, accelerate=True)]
        works.append(fits(hard_em_many, 1))
        for work in works:
            work()
        numpy_loop, one, two, jumping, hard = interleaved(loop, *works, repeats=2)
        size = f"{np.dtype(dtype).name} N=100 P=2000"
        detail = f"{size}; {runs / one:.0f} runs/s on one thread"
        yield Row(what="numpy loop / soft_em_many", ratio=numpy_loop / one, detail=detail)
        yield Row(what="numpy loop / soft_em_many, two threads", ratio=numpy_loop / two, detail=size)
        yield Row(what="soft_em_many, plain / accelerated", ratio=one / jumping, detail=size)
        yield Row(what="soft_em_many / hard_em_many", ratio=one / hard, detail=size)


def _numpy_em(z: Any) -> Any:
    """EM as one would write it: two products with the folded data for each step."""
    p, n = z.shape
    c = z.sum(axis=0) / (p + 0.1 * n)
    while True:
        w = 1 / (1 + np.exp(np.log(0.731 / 0.269) + (c @ c) / 0.2 - (z @ c) / 0.1))
        new = (w @ z) / (w.sum() + 0.1 * n)
        done = np.linalg.norm(new - c) <= max(1e-8, 4 * np.finfo(z.dtype).eps) * np.linalg.norm(new)
        c = new
        if done:
            return c
