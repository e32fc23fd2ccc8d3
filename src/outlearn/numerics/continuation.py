"""Pseudo-arclength continuation of many solution curves at once, through their folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outlearn.numerics.newton import solve_rows
from outlearn.numerics.status import Status

__all__ = ["Curve", "refine_folds", "trace"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Family = Callable[[Array, Array, Index], tuple[Array, Array]]
"""(v (m, n), parameter (m,), rows (m,)) -> residual (m, n), jacobian (m, n, n)."""

_DIFFERENCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """One solution curve: points in the order in which it was walked.

    Attributes
    ----------
    v : array (s, n)
    parameter : array (s,)
    slope : array (s,)
        Parameter component of the unit tangent; it changes sign at a fold.
    status : Status
        CONVERGED if the curve left the interval or closed on itself, else why it ended inside.
    """

    v: Array
    parameter: Array
    slope: Array
    status: Status

    @property
    def folds(self) -> Index:
        """Index i of each fold: the parameter turns between points i and i + 1."""
        return np.flatnonzero(self.slope[1:] * self.slope[:-1] < 0.0)

    @property
    def pieces(self) -> list[slice]:
        """Stretches between folds, on each of which the parameter is monotone."""
        cuts = [0, *(self.folds + 1).tolist(), len(self.parameter)]
        return [slice(a, b) for a, b in pairwise(cuts) if b > a]

    def reversed_into(self, other: Curve) -> Curve:
        """This curve walked backwards, then on along ``other``, which began at the same point."""
        return Curve(
            v=np.concatenate([self.v[:0:-1], other.v]),
            parameter=np.concatenate([self.parameter[:0:-1], other.parameter]),
            slope=np.concatenate([-self.slope[:0:-1], other.slope]),
            status=other.status if self.status is Status.CONVERGED else self.status,
        )


def trace(
    family: Family,
    v: Array,
    parameter: Array,
    toward: Array,
    between: tuple[float, float],
    *,
    first_step: float = 0.05,
    max_step: float = 0.5,
    min_step: float = 1e-7,
    max_points: int = 2000,
    lowest: float = -200.0,
    tolerance: float = 1e-11,
    progress: Callable[[float], None] | None = None,
) -> list[Curve]:
    """Follow the solutions ``v`` (K, n) at ``parameter`` (K,) until each leaves ``between`` or closes.

    All curves advance in lockstep, each with its own step length, so the compiled systems see long batches.
    ``toward`` is the parameter's initial direction (+1 or -1) for every curve. A curve that runs out of the
    representable range (a coordinate below ``lowest``: the solution vanishes) ends there with OUT_OF_RANGE.
    The curve's metric is Euclidean in (v, parameter): both should be of order one, as logarithms are.

    >>> def parabola(v, t, rows):
    ...     return v**2 - t[:, None], 2 * v[:, :, None]
    >>> (curve,) = trace(parabola, np.array([[-1.0]]), np.array([1.0]), np.array([-1.0]), (-1.0, 1.0))
    >>> len(curve.folds), round(float(curve.v[-1, 0]), 6)
    (1, 1.0)
    """
    low, high = between
    count, n = v.shape
    x = np.concatenate([v, np.asarray(parameter, dtype=np.float64)[:, None]], axis=1)
    alive = np.arange(count)
    tangent = np.zeros((count, n + 1))
    guess = np.zeros((count, n + 1))
    guess[:, n] = toward
    tangent, ok = _tangent(family, x, guess, alive)
    home, outward = x.copy(), tangent.copy()
    step = np.full(count, first_step)
    points: list[list[Array]] = [[x[k].copy()] for k in range(count)]
    slopes: list[list[float]] = [[float(tangent[k, n])] for k in range(count)]
    status = np.full(count, Status.ITERATION_LIMIT, dtype=object)
    status[~ok] = Status.STALLED
    alive = alive[ok]
    span = max(high - low, 1e-300)
    for _ in range(3 * max_points):
        if not alive.size:
            break
        trial = x[alive] + step[alive, None] * tangent[alive]
        new, good, used = _correct(family, trial, tangent[alive], alive, tolerance)
        new_tangent, ok = _tangent(family, new, tangent[alive], alive)
        turn = (new_tangent * tangent[alive]).sum(axis=1)
        drift = np.abs(new - trial).max(axis=1)
        good &= ok & (turn > 0.9) & (drift < 0.5 * step[alive])
        failed = alive[~good]
        step[failed] *= 0.4
        dead = failed[step[failed] < min_step]
        status[dead] = Status.STALLED
        won = alive[good]
        away = np.linalg.norm(new[good] - home[won], axis=1)
        was, now = (((y - home[won]) * outward[won]).sum(axis=1) for y in (x[won], new[good]))
        closed = won[(was < 0.0) & (now >= 0.0) & (away < 2.0 * step[won])]
        x[won], tangent[won] = new[good], new_tangent[good]
        quick = (used[good] <= 3) & (turn[good] > 0.985)
        step[won] = np.where(quick, np.minimum(1.6 * step[won], max_step), step[won])
        for k in won:
            points[k].append(x[k].copy())
            slopes[k].append(float(tangent[k, n]))
        outside = won[(x[won, n] <= low) | (x[won, n] >= high)]
        status[outside], status[closed] = Status.CONVERGED, Status.CONVERGED
        vanished = won[(x[won, :n] < lowest).any(axis=1)]
        status[vanished] = Status.OUT_OF_RANGE
        full = won[[len(points[k]) >= max_points for k in won]] if won.size else won
        alive = np.setdiff1d(alive, np.concatenate([dead, outside, closed, vanished, full]))
        if progress is not None:
            reached = [1.0 if k not in alive else abs(x[k, n] - parameter[k]) / span for k in range(count)]
            progress(float(np.mean(reached)))
    curves = []
    for k in range(count):
        path = np.array(points[k])
        curves.append(Curve(v=path[:, :n], parameter=path[:, n], slope=np.array(slopes[k]), status=status[k]))
    return curves


def refine_folds(
    family: Family, before: Array, after: Array, rows: Index, *, rounds: int = 60
) -> tuple[Array, Array, Array]:
    """Solve for the folds between neighbouring curve points ``before`` and ``after``, each (m, n + 1).

    The augmented system - residual = 0 and the tangent's parameter component = 0, that is a singular
    Jacobian - is solved by bracketing along the chord, with the residual solved in the plane normal to it.

    Returns (x, residual, slope): the points, their largest residual component, the remaining slope.
    """
    m, width = before.shape
    chord = after - before
    length = np.linalg.norm(chord, axis=1)
    direction = chord / length[:, None]
    s_low, s_high = np.zeros(m), length.copy()
    t_low, _ = _tangent(family, before, direction, rows)
    t_high, _ = _tangent(family, after, direction, rows)
    g_low, g_high = t_low[:, -1], t_high[:, -1]
    x, slope = before.copy(), g_low.copy()
    side = np.zeros(m, dtype=np.int64)
    for _ in range(rounds):
        # Illinois: regula falsi that cannot get stuck on one side
        with np.errstate(all="ignore"):
            s = np.where(g_high != g_low, (s_low * g_high - s_high * g_low) / (g_high - g_low), s_low)
        s = np.clip(s, np.minimum(s_low, s_high), np.maximum(s_low, s_high))
        x, _, _ = _correct(family, before + s[:, None] * direction, direction, rows, 1e-13, best=True)
        tangent, _ = _tangent(family, x, direction, rows)
        slope = tangent[:, -1]
        same_as_high = slope * g_high > 0.0
        g_low = np.where(same_as_high & (side == 1), 0.5 * g_low, g_low)
        g_high = np.where(~same_as_high & (side == -1), 0.5 * g_high, g_high)
        s_high, g_high = np.where(same_as_high, s, s_high), np.where(same_as_high, slope, g_high)
        s_low, g_low = np.where(same_as_high, s_low, s), np.where(same_as_high, g_low, slope)
        side = np.where(same_as_high, 1, -1)
        if np.all((np.abs(slope) < 1e-11) | (np.abs(s_high - s_low) < 1e-14 * (1.0 + length))):
            break
    residual, _ = family(x[:, : width - 1], x[:, -1], rows)
    return x, np.abs(residual).max(axis=1), np.abs(slope)


def _extended(family: Family, x: Array, rows: Index) -> tuple[Array, Array]:
    """Residual and the n x (n+1) Jacobian, whose last column is differenced (it only steers)."""
    v, t = x[:, :-1], x[:, -1]
    residual, jacobian = family(v, t, rows)
    h = _DIFFERENCE
    up, _ = family(v, t + h, rows)
    down, _ = family(v, t - h, rows)
    return residual, np.concatenate([jacobian, ((up - down) / (2.0 * h))[:, :, None]], axis=2)


def _tangent(family: Family, x: Array, toward: Array, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
    with np.errstate(all="ignore"):
        _, wide = _extended(family, x, rows)
        m, n, _ = wide.shape
        bordered = np.concatenate([wide, toward[:, None, :]], axis=1)
        right = np.zeros((m, n + 1))
        right[:, n] = 1.0
        tangent = solve_rows(bordered, right)
        tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    return tangent, np.asarray(np.isfinite(tangent).all(axis=1))


def _correct(
    family: Family, start: Array, normal: Array, rows: Index, tolerance: float, *, best: bool = False
) -> tuple[Array, NDArray[np.bool_], Index]:
    """Newton onto the curve in the plane through ``start`` normal to ``normal``."""
    x = start.copy()
    m = len(x)
    done, used = np.zeros(m, dtype=bool), np.zeros(m, dtype=np.int64)
    with np.errstate(all="ignore"):
        for sweep in range(8):
            todo = np.flatnonzero(~done)
            if not todo.size:
                break
            residual, wide = _extended(family, x[todo], rows[todo])
            small = np.abs(residual).max(axis=1) < tolerance
            if best:
                small &= sweep > 3
            done[todo[small]] = True
            todo, residual, wide = todo[~small], residual[~small], wide[~small]
            if not todo.size:
                continue
            plane = ((x[todo] - start[todo]) * normal[todo]).sum(axis=1)
            bordered = np.concatenate([wide, normal[todo][:, None, :]], axis=1)
            delta = solve_rows(bordered, -np.concatenate([residual, plane[:, None]], axis=1))
            broken = ~np.isfinite(delta).all(axis=1)
            delta[broken] = 0.0
            x[todo] += np.clip(delta, -1.0, 1.0)
            used[todo] += 1
    return x, done, used
