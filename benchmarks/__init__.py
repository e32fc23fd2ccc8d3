"""Side-by-side measurements. Every figure is a ratio of two times taken in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Row", "best_time", "interleaved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement: what, the ratio that matters, what we aim at, and how it came about."""

    what: str
    ratio: float
    aim: str = ""
    detail: str = ""


def best_time(work: Callable[[], object], repeats: int = 5) -> float:
    """Shortest wall time of ``work`` over some repeats, in seconds."""
    return interleaved(work, repeats=repeats)[0]


def interleaved(*works: Callable[[], object], repeats: int = 5) -> list[float]:
    """Shortest wall time of each work, run in turn so that a noisy moment hits all of them."""
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best
