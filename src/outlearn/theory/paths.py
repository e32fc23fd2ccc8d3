"""All branches over an interval of one parameter: curves, and stretches of them between folds.

Works on many rows at once (a row: everything but that parameter fixed), so that one transition and a whole
phase diagram are the same computation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from outlearn.numerics.continuation import Curve, Family, refine_folds, trace
from outlearn.theory.search import polish, search
from outlearn.theory.system import Points, System

__all__ = [
    "LOGARITHMIC",
    "Fold",
    "Over",
    "Stretch",
    "family",
    "from_axis",
    "stretches",
    "to_axis",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_CHECKPOINTS = 5
_STEP = 1e-5

Over = Literal["eta", "alpha", "gamma", "eta_tilde", "gamma_tilde"]
OVER = get_args(Over)
LOGARITHMIC = ("alpha", "gamma", "gamma_tilde")


def to_axis(over: str, value: Array) -> Array:
    """Coordinate along which curves are walked: eta itself, the logarithm of the others."""
    return np.log(value) if over in LOGARITHMIC else np.asarray(value, dtype=np.float64)


def from_axis(over: str, t: Array) -> Array:
    """Inverse of :func:`to_axis`."""
    return np.exp(t) if over in LOGARITHMIC else np.asarray(t, dtype=np.float64)


def family(system: System, rows: Points, over: str) -> Family:
    """The system as a family in one parameter, for the continuation."""

    def evaluate(v: Array, t: Array, index: Index) -> tuple[Array, Array]:
        return system.evaluate(rows.take(index).shifted(over, from_axis(over, t)), v)

    return evaluate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """A spinodal on the axis: where, its unknowns, residual, remaining slope and error estimate."""

    t: float
    v: Array
    residual: float
    slope: float
    error: float


@dataclass(slots=True, kw_only=True, eq=False)
class Stretch:
    """One branch of one row between two folds (or ends of the interval); t increases.

    ``slope`` is df/dt: the energy is stationary in v, so that it is the partial derivative at fixed v.
    """

    row: int
    t: Array
    v: Array
    energy: Array
    slope: Array
    sign: int
    low_fold: Fold | None = None
    high_fold: Fold | None = None
    explicit: str | None = None

    def covers(self, t: float) -> bool:
        """Whether the branch exists at t."""
        return bool(self.t[0] <= t <= self.t[-1])

    def guess(self, t: float) -> Array:
        """Unknowns interpolated at t."""
        return np.array([np.interp(t, self.t, self.v[:, i]) for i in range(self.v.shape[1])])

    def energies(self, t: Array) -> Array:
        """Energies interpolated at t by cubics, infinite where the branch does not exist."""
        there = (t >= self.t[0]) & (t <= self.t[-1])
        out = np.full(t.shape, np.inf)
        out[there] = CubicHermiteSpline(self.t, self.energy, self.slope)(t[there])
        return out


def stretches(
    system: System,
    rows: Points,
    over: str,
    between: tuple[float, float],
    *,
    progress: Callable[[float], None] | None = None,
) -> list[Stretch]:
    """Every branch of every row between two values (on the axis) of the parameter.

    Curves start from all solutions at the lower end; solutions found at checkpoints inside and at the upper
    end that lie on no curve yet start further ones, in both directions.
    """
    low, high = between
    evaluate = family(system, rows, over)
    curves: list[tuple[int, Curve]] = []
    lowest, n = system.lowest, len(system.names)
    first = search(system, rows.shifted(over, from_axis(over, np.full(len(rows), low))))
    curves += _walk(evaluate, first.v, low, first.owner, (+1,), between, lowest, progress)
    for t in np.linspace(low, high, _CHECKPOINTS)[1:]:
        here = rows.shifted(over, from_axis(over, np.full(len(rows), t)))
        seeds, owner = _on_curves(curves, t, n)
        found = search(system, here, seeds=(seeds, owner) if len(seeds) else None)
        on, on_owner = (polish(system, here, seeds, owner)[0], owner) if len(seeds) else (seeds, owner)
        fresh = [
            i
            for i in range(len(found.v))
            if not (np.abs(on[on_owner == found.owner[i]] - found.v[i]).max(axis=1, initial=0.0) < 1e-5).any()
        ]
        # walking from one fresh solution may pass the others, so walk one per row and look again
        while fresh:
            batch = list({int(found.owner[i]): i for i in reversed(fresh)}.values())
            ways = (-1, +1) if t < high else (-1,)
            new = _walk(evaluate, found.v[batch], t, found.owner[batch], ways, between, lowest, None)
            curves += new
            fresh = [
                i for i in fresh if i not in batch and not _near(new, int(found.owner[i]), t, found.v[i])
            ]
    return _cut(system, rows, over, curves, evaluate) + _explicit(system, rows, over, between)


def _walk(
    evaluate: Family,
    v: Array,
    t: float,
    owner: Index,
    ways: tuple[int, ...],
    between: tuple[float, float],
    lowest: float,
    progress: Callable[[float], None] | None,
) -> list[tuple[int, Curve]]:
    """Curves through the solutions v at t, walked in one direction or in both and joined."""
    if not len(v):
        return []
    count = len(v)

    def owned(w: Array, s: Array, index: Index) -> tuple[Array, Array]:
        return evaluate(w, s, owner[index % count])

    walked = trace(
        owned,
        np.tile(v, (len(ways), 1)),
        np.full(count * len(ways), t),
        np.repeat(np.array(ways, dtype=np.float64), count),
        between,
        lowest=lowest,
        progress=progress,
    )
    if len(ways) == 2:
        walked = [down.reversed_into(up) for down, up in zip(walked[:count], walked[count:], strict=True)]
    return [(int(k), curve) for k, curve in zip(owner, walked, strict=True) if len(curve.parameter) > 1]


def _on_curves(curves: list[tuple[int, Curve]], t: float, n: int) -> tuple[Array, Index]:
    """Interpolated unknowns, n of them, wherever a curve crosses t."""
    v, owner = [], []
    for row, curve in curves:
        p = curve.parameter
        for i in np.flatnonzero((p[:-1] - t) * (p[1:] - t) <= 0.0):
            w = 0.0 if p[i + 1] == p[i] else (t - p[i]) / (p[i + 1] - p[i])
            v.append((1.0 - w) * curve.v[i] + w * curve.v[i + 1])
            owner.append(row)
    return np.array(v).reshape(len(v), n), np.array(owner, dtype=np.int64)


def _near(curves: list[tuple[int, Curve]], row: int, t: float, v: Array) -> bool:
    seeds, owner = _on_curves(curves, t, len(v))
    return bool((np.abs(seeds[owner == row] - v).max(axis=1, initial=0.0) < 0.05).any())


def _cut(
    system: System, rows: Points, over: str, curves: list[tuple[int, Curve]], evaluate: Family
) -> list[Stretch]:
    """Cut curves at their folds, which are solved for, and drop repetitions."""
    before, after, owner = [], [], []
    for row, curve in curves:
        x = np.concatenate([curve.v, curve.parameter[:, None]], axis=1)
        for i in curve.folds:
            before.append(x[i])
            after.append(x[i + 1])
            owner.append(row)
    folds: list[Fold] = []
    if before:
        b, a, index = np.array(before), np.array(after), np.array(owner, dtype=np.int64)
        x, residual, slope = refine_folds(evaluate, b, a, index)
        fine, _, _ = refine_folds(family(system.refined(), rows, over), b, a, index)
        error = np.abs(fine[:, -1] - x[:, -1]) + 4e-15 * np.maximum(1.0, np.abs(x[:, -1]))
        folds = [
            Fold(t=float(p[-1]), v=p[:-1], residual=float(r), slope=float(s), error=float(e))
            for p, r, s, e in zip(x, residual, slope, error, strict=True)
        ]
    out: list[Stretch] = []
    cursor = 0
    for row, curve in curves:
        mine = folds[cursor : cursor + len(curve.folds)]
        cursor += len(curve.folds)
        parity = 1
        for i, part in enumerate(curve.pieces):
            start, end = (mine[i - 1] if i else None), (mine[i] if i < len(mine) else None)
            t = np.concatenate([[start.t] if start else [], curve.parameter[part], [end.t] if end else []])
            v = np.concatenate([start.v[None] if start else curve.v[:0], curve.v[part]])
            v = np.concatenate([v, end.v[None]]) if end else v
            if t[-1] < t[0]:
                t, v, start, end = t[::-1], v[::-1], end, start
            keep = np.concatenate([[True], np.diff(t) > 0.0])
            out.append(
                Stretch(
                    row=row,
                    t=t[keep],
                    v=v[keep],
                    energy=np.empty(0),
                    slope=np.empty(0),
                    sign=parity,
                    low_fold=start,
                    high_fold=end,
                )
            )
            parity = -parity
    if not out:
        return out
    everything = np.concatenate([s.v for s in out])
    where = np.concatenate([s.t for s in out])
    index = np.concatenate([np.full(len(s.t), s.row) for s in out])
    at = rows.take(index).shifted(over, from_axis(over, where))
    energy = system.free_energy(at, everything)
    up, down = (at.shifted(over, from_axis(over, where + h)) for h in (_STEP, -_STEP))
    slope = (system.free_energy(up, everything) - system.free_energy(down, everything)) / (2.0 * _STEP)
    sign = np.array([s.sign for s in out])
    if system.orientation:
        middle = np.cumsum([0] + [len(s.t) for s in out[:-1]]) + np.array([len(s.t) // 2 for s in out])
        jacobian = system.evaluate(at.take(middle), everything[middle])[1]
        sign = np.sign(np.linalg.det(jacobian)).astype(np.int64) * system.orientation
    slope = np.where(np.isfinite(slope), slope, 0.0)  # where the equations end within a step
    cursor = 0
    for s, orientation in zip(out, sign, strict=True):
        s.energy, s.slope = energy[cursor : cursor + len(s.t)], slope[cursor : cursor + len(s.t)]
        s.sign = int(orientation)
        cursor += len(s.t)
    return _distinct(out)


def _distinct(all_of_them: list[Stretch]) -> list[Stretch]:
    """Drop stretches that lie on an earlier one of the same row."""
    kept: list[Stretch] = []
    by_row: dict[int, list[Stretch]] = {}
    for s in sorted(all_of_them, key=lambda s: -(s.t[-1] - s.t[0])):
        t = 0.5 * (s.t[0] + s.t[-1])
        v = s.guess(t)
        twins = (
            o
            for o in by_row.get(s.row, [])
            if o.sign == s.sign and o.covers(t) and np.abs(o.guess(t) - v).max() < 0.05
        )
        if next(twins, None) is None:
            kept.append(s)
            by_row.setdefault(s.row, []).append(s)
    return kept


def _explicit(system: System, rows: Points, over: str, between: tuple[float, float]) -> list[Stretch]:
    """Explicit branches as stretches; where one begins or ends inside is found by bisection."""
    out: list[Stretch] = []
    low, high = between
    mesh = np.linspace(low, high, 65)
    n = len(system.names)
    for row in range(len(rows)):
        one = rows.take(np.full(len(mesh), row))
        for e, extra in enumerate(system.explicit(one.shifted(over, from_axis(over, mesh)))):

            def exists(t: float, row: int = row, e: int = e) -> bool:
                here = rows.take([row]).shifted(over, from_axis(over, np.array([t])))
                return bool(system.explicit(here)[e].exists[0])

            inside = np.flatnonzero(extra.exists)
            if not inside.size:
                continue
            a, b = int(inside[0]), int(inside[-1])
            begin = mesh[a] if a == 0 else _bisect(exists, mesh[a - 1], mesh[a])
            end = mesh[b] if b == len(mesh) - 1 else _bisect(lambda t: not exists(t), mesh[b], mesh[b + 1])
            t = np.unique(np.concatenate([[begin], mesh[a : b + 1], [end]]))
            here = rows.take(np.full(len(t), row)).shifted(over, from_axis(over, t))
            blank = np.full(n, np.nan)
            energy = np.asarray(system.explicit(here)[e].free_energy, dtype=np.float64)
            out.append(
                Stretch(
                    row=row,
                    t=t,
                    v=np.full((len(t), n), np.nan),
                    energy=energy,
                    slope=np.gradient(energy, t) if len(t) > 1 else np.zeros(1),
                    sign=1 if extra.stable_under_iteration else -1,
                    low_fold=_edge(begin, blank) if a else None,
                    high_fold=_edge(end, blank) if b < len(mesh) - 1 else None,
                    explicit=extra.branch,
                )
            )
    return out


def _edge(t: float, v: Array) -> Fold:
    return Fold(t=float(t), v=v, residual=0.0, slope=0.0, error=4e-15 * max(1.0, abs(t)))


def _bisect(exists: Callable[[float], bool], outside: float, inside: float) -> float:
    for _ in range(70):
        middle = 0.5 * (outside + inside)
        if middle in (outside, inside):
            break
        if exists(middle):
            inside = middle
        else:
            outside = middle
    return inside
