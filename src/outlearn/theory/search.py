"""Find every solution of the saddle-point equations at many points at once.

Nets, each finer: Newton from the system's starts; the same with the known solutions deflated; a dense grid
of starts; at last the best attempt again, with patience. What was missed is noticed by counting: the
solutions of a point, each with the sign of its Jacobian determinant, sum to one (the topological degree of
the equations, which no parameter can alter).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outlearn.numerics import Status
from outlearn.numerics.newton import newton
from outlearn.theory.system import Points, System

__all__ = ["TOLERANCE", "Found", "polish", "search"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

TOLERANCE = 1e-10
_SAME = 1e-6
# Newton steps: what does not converge soon from a start rarely does later, but the best attempt may
_PATIENT, _BRISK, _STUBBORN = 30, 20, 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Solutions of many points: row i of ``v`` solves point ``owner[i]``.

    Attributes
    ----------
    v, residual, sign : arrays (M, n), (M,), (M,)
        ``sign`` is +1 where the damped iteration is stable, -1 on unstable branches, 0 if unknown.
    owner : array (M,)
    complete : array (K,)
        Whether the count of each point's solutions comes out right.
    attempt, attempt_residual : arrays (K, n), (K,)
        The best that was reached at each point, solved or not.
    """

    v: Array
    residual: Array
    sign: Index
    owner: Index
    complete: NDArray[np.bool_]
    attempt: Array
    attempt_residual: Array

    def of(self, k: int) -> Index:
        """Rows that belong to point k."""
        return np.flatnonzero(self.owner == k)


def polish(
    system: System,
    points: Points,
    v: Array,
    owner: Index,
    *,
    max_iterations: int = _PATIENT,
    known: Array | None = None,
) -> tuple[Array, Array, NDArray[np.object_]]:
    """Newton from ``v`` (M, n), row i at point ``owner[i]``; returns v, residual, status."""
    rows = points.take(owner)
    result = newton(
        lambda w, index: system.evaluate(rows.take(index), w),
        v,
        tolerance=TOLERANCE,
        max_iterations=max_iterations,
        known=known,
    )
    return result.v, result.residual, result.status


def search(
    system: System,
    points: Points,
    *,
    seeds: tuple[Array, Index] | None = None,
    known: Found | None = None,
    own_starts: bool = True,
    nets: bool = True,
    thorough: bool = False,
) -> Found:
    """Find all solutions of every point.

    ``seeds`` are further starts (M, n) with the point of each; ``known`` solutions are kept. ``thorough``
    casts the finer nets everywhere; otherwise they are cast only where the count says that something is
    missing (the dense one only if there is a count), and not at all without ``nets``.
    """
    count = len(points)
    starts = None if not (own_starts or nets) else system.starts(points)
    pool = _Pool(system, points, known)
    if seeds is not None:
        pool.add(*seeds)
    if own_starts and starts is not None:
        pool.add(*_flatten(starts), max_iterations=_BRISK)
    if starts is None or not nets:
        return pool.found()
    for net in ("deflate", "dense", "deflate", "attempt"):
        pending = np.arange(count) if thorough else np.flatnonzero(~pool.complete())
        if not pending.size:
            break
        if net == "deflate":
            pool.add_deflated(pending, starts)
        elif net == "attempt":
            pool.add(pool.attempt[pending], pending, max_iterations=_STUBBORN)
        elif thorough or system.counted:
            grid = system.grid(points.take(pending))
            v, owner = _flatten(grid)
            pool.add(v, pending[owner])
    return pool.found()


class _Pool:
    """The distinct solutions gathered so far."""

    def __init__(self, system: System, points: Points, known: Found | None) -> None:
        n = len(system.names)
        self.system, self.points = system, points
        if known is None:
            self.v, self.residual = np.empty((0, n)), np.empty(0)
            self.sign, self.owner = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
            self.attempt = np.full((len(points), n), np.nan)
            self.attempt_residual = np.full(len(points), np.inf)
        else:
            self.v, self.residual, self.sign, self.owner = known.v, known.residual, known.sign, known.owner
            self.attempt, self.attempt_residual = known.attempt, known.attempt_residual
        self.vanishing = np.zeros(len(points), dtype=bool)
        self.explicit = sum(
            (x.exists * (1 if x.stable_under_iteration else -1) for x in system.explicit(points)),
            start=np.zeros(len(points), dtype=np.int64),
        )

    def add(
        self, v: Array, owner: Index, known: Array | None = None, *, max_iterations: int = _PATIENT
    ) -> None:
        usable = np.isfinite(v).all(axis=1)
        v, owner = v[usable], owner[usable]
        if known is not None:
            known = known[usable]
        if not len(v):
            return
        v, residual, status = polish(
            self.system, self.points, v, owner, known=known, max_iterations=max_iterations
        )
        order = np.argsort(-residual, kind="stable")  # the best attempt of each point is written last
        finite = order[np.isfinite(residual[order])]
        better = finite[residual[finite] < self.attempt_residual[owner[finite]]]
        self.attempt[owner[better]] = v[better]
        self.attempt_residual[owner[better]] = residual[better]
        good = np.array([s is Status.CONVERGED for s in status], dtype=bool)
        gone = (v < self.system.lowest).any(axis=1)
        self.vanishing[owner[good & gone]] = True
        good &= ~gone
        good &= ~self.system.undefined(self.points.take(owner), v)
        v, residual, owner = v[good], residual[good], owner[good]
        fresh = self._fresh(v, residual, owner)
        v, residual, owner = v[fresh], residual[fresh], owner[fresh]
        if not len(v):
            return
        sign = np.zeros(len(v), dtype=np.int64)
        if self.system.orientation:
            jacobian = self.system.evaluate(self.points.take(owner), v)[1]
            sign = np.sign(np.linalg.det(jacobian)).astype(np.int64) * self.system.orientation
        self.v = np.concatenate([self.v, v])
        self.residual = np.concatenate([self.residual, residual])
        self.owner = np.concatenate([self.owner, owner])
        self.sign = np.concatenate([self.sign, sign])

    def _fresh(self, v: Array, residual: Array, owner: Index) -> Index:
        """Rows that repeat neither an earlier solution nor one another."""
        every_v, every_owner = np.concatenate([self.v, v]), np.concatenate([self.owner, owner])
        old = len(self.v)
        keep: list[int] = []
        # repeated solutions agree to rounding, so one sort by point and first coordinate brings them together
        order = np.lexsort((every_v[:, 0], every_owner))
        last: list[int] = []
        for i in order:
            last = [
                j
                for j in last
                if every_owner[j] == every_owner[i] and abs(every_v[i, 0] - every_v[j, 0]) < _SAME
            ]
            twin = next((j for j in last if np.abs(every_v[i] - every_v[j]).max() < _SAME), None)
            if twin is None:
                last.append(i)
                if i >= old:
                    keep.append(i - old)
            elif i < old <= twin:  # the earlier solution wins over its repetition
                keep.remove(twin - old)
                last[last.index(twin)] = i
        return np.array(sorted(keep), dtype=np.int64)

    def add_deflated(self, pending: Index, starts: Array) -> None:
        """Newton from every fourth start, kept away from what is known."""
        most = int(np.bincount(self.owner, minlength=len(self.points))[pending].max(initial=0))
        if most == 0:
            return
        known = np.full((len(self.points), most, starts.shape[2]), np.nan)
        filled = np.zeros(len(self.points), dtype=np.int64)
        for v, k in zip(self.v, self.owner, strict=True):
            if filled[k] < most:
                known[k, filled[k]] = v
                filled[k] += 1
        v, owner = _flatten(starts[:: max(1, len(starts) // 6)][:, pending])
        owner = pending[owner]
        self.add(v, owner, known[owner])

    def complete(self) -> NDArray[np.bool_]:
        total = self.explicit + np.bincount(self.owner, weights=self.sign, minlength=len(self.points))
        some = np.bincount(self.owner, minlength=len(self.points)) + self.explicit > 0
        counted = self.system.counted and self.system.orientation != 0
        # an unstable solution that all but coincides with the trivial one cannot be told from it
        return some & ((total == 1) | (self.vanishing & (total == 2)) | (not counted))

    def found(self) -> Found:
        return Found(
            v=self.v,
            residual=self.residual,
            sign=self.sign,
            owner=self.owner,
            complete=self.complete(),
            attempt=self.attempt,
            attempt_residual=self.attempt_residual,
        )


def _flatten(starts: Array) -> tuple[Array, Index]:
    """(S, K, n) starts as rows, with the point of each."""
    s, k, n = starts.shape
    return starts.reshape(s * k, n), np.tile(np.arange(k), s)
