"""Drawing data: against numpy's default stream with a temporary for every step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row, interleaved
from outlearn.model import Ensemble, sample


def rows() -> Iterator[Row]:
    ensemble, n, p = Ensemble(eta=0.0, gamma=10.0), 500, 10_000

    def naive() -> None:
        rng = np.random.default_rng(0)
        v = rng.random(p) < 0.5
        y = rng.choice([-1, 1], size=p)
        rng.normal(size=(p, n)) / np.sqrt(10.0) + np.outer(v * y, rng.normal(size=n) / np.sqrt(n))

    ours, single, theirs = interleaved(
        lambda: sample(ensemble, n, p, rng=0),
        lambda: sample(ensemble, n, p, rng=0, dtype=np.float32),
        naive,
    )
    yield Row(what="naive numpy / sample, float64", ratio=theirs / ours, detail=f"N={n} P={p}")
    yield Row(what="naive numpy / sample, float32", ratio=theirs / single, detail=f"N={n} P={p}")
