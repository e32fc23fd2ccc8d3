"""Where the equilibrium passes from one branch to another: first-order points of many rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outlearn.numerics import Status
from outlearn.theory.paths import Stretch, from_axis
from outlearn.theory.search import polish
from outlearn.theory.system import Points, System

__all__ = ["Crossing", "crossings", "energies_at"]

Array = NDArray[np.float64]

_MESH = 257


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
        nodes = (np.clip(s.t, *between) for s in mine)
        mesh = np.unique(np.concatenate([np.linspace(*between, _MESH), *nodes]))
        energy = np.array([s.energies(mesh) for s in mine])
        best = np.argmin(energy, axis=0)
        for j in np.flatnonzero(best[1:] != best[:-1]):
            a, b = mine[best[j]], mine[best[j + 1]]
            low, high = max(a.t[0], b.t[0], mesh[j]), min(a.t[-1], b.t[-1], mesh[j + 1])
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
            energy[i] = s.energies(np.array(where))
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
    begin = np.array([max(a.t[0], b.t[0]) for a, b, _, _ in pairs])
    end = np.array([min(a.t[-1], b.t[-1]) for a, b, _, _ in pairs])
    g_low, ok_low = difference(low)
    g_high, ok_high = difference(high)
    width = np.maximum(high - low, 1e-3)
    for _ in range(3):  # the energies were interpolated: a bracket that missed the crossing gets some air
        missed = g_low * g_high > 0.0
        if not missed.any():
            break
        width = 4.0 * width
        low = np.where(missed, np.maximum(begin, low - width), low)
        high = np.where(missed, np.minimum(end, high + width), high)
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
