"""All branches over an interval of one parameter: curves, stretches between folds, crossings of energies.

Works on many rows at once (a row: everything but that parameter fixed), so that one transition and a whole
phase diagram are the same computation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outlearn.exceptions import ParameterError
from outlearn.numerics import Status
from outlearn.numerics.continuation import Curve, Family, refine_folds, trace
from outlearn.theory.search import polish, search
from outlearn.theory.system import Points, System

__all__ = [
    "Crossing",
    "Fold",
    "Stretch",
    "crossings",
    "energies_at",
    "family",
    "from_axis",
    "stretches",
    "to_axis",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_CHECKPOINTS = 5


def to_axis(over: str, value: Array) -> Array:
    """Coordinate along which curves are walked: ln for alpha and gamma, eta itself."""
    return np.log(value) if over in ("alpha", "gamma") else np.asarray(value, dtype=np.float64)


def from_axis(over: str, t: Array) -> Array:
    """Inverse of :func:`to_axis`."""
    return np.exp(t) if over in ("alpha", "gamma") else np.asarray(t, dtype=np.float64)


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
    """One branch of one row between two folds (or ends of the interval); t increases."""

    row: int
    t: Array
    v: Array
    energy: Array
    sign: int
    low_fold: Fold | None = None
    high_fold: Fold | None = None
    explicit: str | None = None
    neighbours: list[int] = field(default_factory=list)

    def covers(self, t: float) -> bool:
        """Whether the branch exists at t."""
        return bool(self.t[0] <= t <= self.t[-1])

    def guess(self, t: float) -> Array:
        """Unknowns interpolated at t."""
        return np.array([np.interp(t, self.t, self.v[:, i]) for i in range(self.v.shape[1])])


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
    if not low < high:
        raise ParameterError("between", between, "two increasing values")
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
    sign = np.array([s.sign for s in out])
    if system.orientation:
        middle = np.cumsum([0] + [len(s.t) for s in out[:-1]]) + np.array([len(s.t) // 2 for s in out])
        jacobian = system.evaluate(at.take(middle), everything[middle])[1]
        sign = np.sign(np.linalg.det(jacobian)).astype(np.int64) * system.orientation
    cursor = 0
    for s, orientation in zip(out, sign, strict=True):
        s.energy = energy[cursor : cursor + len(s.t)]
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

            out.append(
                Stretch(
                    row=row,
                    t=t,
                    v=np.full((len(t), n), np.nan),
                    energy=np.asarray(system.explicit(here)[e].free_energy, dtype=np.float64),
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossing:
    """Where the equilibrium passes from one stretch to another."""

    row: int
    t: float
    below: Stretch
    above: Stretch
    error: float
    gap: float
    status: Status


def crossings(
    system: System, rows: Points, over: str, found: list[Stretch], between: tuple[float, float]
) -> list[Crossing]:
    """First-order points: free energies of two reachable branches are equal and both are the lowest.

    Curves end beyond the interval, each somewhere else, so that nothing is compared outside ``between``.
    """
    pairs: list[tuple[Stretch, Stretch, float, float]] = []
    for row in sorted({s.row for s in found}):
        mine = [s for s in found if s.row == row and s.sign >= 0 and len(s.t) > 1]
        if len(mine) < 2:
            continue
        mesh = np.unique(np.concatenate([between, *(np.clip(s.t, *between) for s in mine)]))
        energy = np.full((len(mine), len(mesh)), np.inf)
        for i, s in enumerate(mine):
            there = (mesh >= s.t[0]) & (mesh <= s.t[-1])
            energy[i, there] = np.interp(mesh[there], s.t, s.energy)
        best = np.argmin(energy, axis=0)
        for j in np.flatnonzero(best[1:] != best[:-1]):
            a, b = mine[best[j]], mine[best[j + 1]]
            # energies between curve points are interpolated here, so the bracket gets some air
            floor, ceiling = float(mesh[max(int(j) - 3, 0)]), float(mesh[min(int(j) + 4, len(mesh) - 1)])
            low, high = max(a.t[0], b.t[0], floor), min(a.t[-1], b.t[-1], ceiling)
            if low <= high:
                pairs.append((a, b, float(low), float(high)))
    if not pairs:
        return []
    t, gap, good = _equal_energies(system, rows, over, pairs)
    fine, _, _ = _equal_energies(system.refined(), rows, over, pairs)
    return [
        Crossing(
            row=a.row,
            t=float(t[i]),
            below=a,
            above=b,
            error=float(abs(fine[i] - t[i]) + 1e-13 * max(1.0, abs(t[i]))),
            gap=float(abs(gap[i])),
            status=Status.CONVERGED if good[i] else Status.STALLED,
        )
        for i, (a, b, _, _) in enumerate(pairs)
    ]


def energies_at(
    system: System, rows: Points, over: str, wanted: list[tuple[Stretch, float]]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Free energy of each stretch at its t, solved there; with the unknowns and whether it converged."""
    n = len(system.names)
    energy, v = np.empty(len(wanted)), np.full((len(wanted), n), np.nan)
    good = np.ones(len(wanted), dtype=bool)
    solve = [i for i, (s, _) in enumerate(wanted) if s.explicit is None]
    if solve:
        t = np.array([wanted[i][1] for i in solve])
        at = rows.take([wanted[i][0].row for i in solve]).shifted(over, from_axis(over, t))
        guess = np.array([wanted[i][0].guess(x) for i, x in zip(solve, t, strict=True)])
        x, residual, _ = polish(system, at, guess, np.arange(len(solve)))
        energy[solve], v[solve] = system.free_energy(at, x), x
        good[solve] = (residual < 1e-10) & (np.abs(x - guess).max(axis=1) < 1.0)
    for i, (s, where) in enumerate(wanted):
        if s.explicit is not None:
            energy[i] = np.interp(where, s.t, s.energy)
    return energy, v, good


def _equal_energies(
    system: System, rows: Points, over: str, pairs: list[tuple[Stretch, Stretch, float, float]]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Illinois on f_a - f_b for all pairs at once."""

    def difference(t: Array) -> tuple[Array, NDArray[np.bool_]]:
        wanted = [(s, float(x)) for (a, b, _, _), x in zip(pairs, t, strict=True) for s in (a, b)]
        energy, _, good = energies_at(system, rows, over, wanted)
        return energy[0::2] - energy[1::2], good[0::2] & good[1::2]

    low, high = np.array([p[2] for p in pairs]), np.array([p[3] for p in pairs])
    g_low, ok_low = difference(low)
    g_high, ok_high = difference(high)
    bracketed = (g_low * g_high <= 0.0) & ok_low & ok_high
    t, gap, side = 0.5 * (low + high), np.zeros(len(pairs)), np.zeros(len(pairs))
    for _ in range(60):
        with np.errstate(all="ignore"):
            t = np.where(
                g_high != g_low, (low * g_high - high * g_low) / (g_high - g_low), 0.5 * (low + high)
            )
        t = np.clip(t, low, high)
        gap, _ = difference(t)
        up = gap * g_high > 0.0
        g_low = np.where(up & (side == 1), 0.5 * g_low, g_low)
        g_high = np.where(~up & (side == -1), 0.5 * g_high, g_high)
        high, g_high = np.where(up, t, high), np.where(up, gap, g_high)
        low, g_low = np.where(up, low, t), np.where(up, g_low, gap)
        side = np.where(up, 1, -1)
        if np.all((np.abs(gap) < 1e-13) | (high - low < 1e-14 * np.maximum(1.0, np.abs(t)))):
            break
    return t, gap, bracketed
