"""Message passing against EM: reads of the data, time, and the error each ends with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import Row, interleaved
from outlearn.inference.amp import amp
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, overlaps, sample

_N, _ALPHA, _GAMMA = 1000, 20, 10.0


def rows() -> Iterator[Row]:
    for eta in (0.0, 2.0, 3.0, 4.0):
        data = sample(Ensemble(eta, _GAMMA), _N, _ALPHA * _N, rng=int(eta), dtype=np.float32)
        settings: dict[str, Any] = {
            "contamination": Ensemble(eta, _GAMMA).outlier_fraction,
            "noise_variance": 1.0 / _GAMMA,
            "tol": 1e-5,
        }
        results: dict[str, Any] = {}

        def message_passing(data: Any = data, settings: Any = settings, results: Any = results) -> None:
            results["amp"] = amp(data.X, data.y, **settings)

        def em(data: Any = data, settings: Any = settings, results: Any = results) -> None:
            results["em"] = soft_em(data.X, data.y, init="hebb", **settings)

        passing, climbing = interleaved(message_passing, em, repeats=2)  # the first compiles
        angles = {
            name: overlaps(fit.center * np.sqrt(_N), data.center).angle for name, fit in results.items()
        }
        reads = {name: fit.n_reads for name, fit in results.items()}
        shape = f"eta={eta:g} N={_N} P={_ALPHA * _N}"
        yield Row(
            what=f"reads, soft EM from Hebb / message passing, {shape}",
            ratio=reads["em"] / reads["amp"],
            aim="> 1",
            detail=f"{reads['em']} / {reads['amp']} reads; Phi {angles['em']:.3f} / {angles['amp']:.3f}",
        )
        yield Row(what=f"time, soft EM / message passing, {shape}", ratio=climbing / passing)
