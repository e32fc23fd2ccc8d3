"""Newton's iteration on many systems at once, judged on the undamped residual; deflation; damped fallback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outlearn.numerics.status import Status

__all__ = ["NewtonResult", "newton", "solve_rows"]

Array = NDArray[np.float64]
Evaluate = Callable[[Array, NDArray[np.int64]], tuple[Array, Array]]
"""(v of shape (m, n), rows of shape (m,)) -> residual (m, n), jacobian (m, n, n)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewtonResult:
    """Where each row ended: unknowns, largest residual component, steps taken, status."""

    v: Array
    residual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Rows whose residual is below the tolerance."""
        return np.array([s is Status.CONVERGED for s in self.status], dtype=bool)


def solve_rows(jacobian: Array, residual: Array) -> Array:
    """Solve each row's linear system; singular rows get a least-squares step, rows not finite get nan."""
    good = np.isfinite(jacobian).all(axis=(1, 2)) & np.isfinite(residual).all(axis=1)
    step = np.full(residual.shape, np.nan)
    if good.any():
        try:
            step[good] = np.linalg.solve(jacobian[good], residual[good][..., None])[..., 0]
        except np.linalg.LinAlgError:
            for k in np.flatnonzero(good):
                step[k] = np.linalg.lstsq(jacobian[k], residual[k], rcond=1e-12)[0]
    return step


def newton(
    evaluate: Evaluate,
    start: Array,
    *,
    tolerance: float = 1e-10,
    floor: float = 1e-14,
    max_iterations: int = 60,
    max_step: float = 2.0,
    known: Array | None = None,
    patience: int = 2,
    damped_steps: int = 3,
    lower: float = -700.0,
    upper: float = 700.0,
) -> NewtonResult:
    """Find roots of many systems from many starts: exact Newton steps, shortened where the residual grows.

    Each row keeps its own trust radius, so one bad row does not slow the others. After the residual is below
    ``tolerance`` rows are polished while a step still halves it, down to ``floor``. Where Newton cannot
    descend (a singular Jacobian, a fold of the residual) the row takes damped fixed-point steps
    ``v <- v - residual/2`` for a while: for residuals written as ``v - F(v)`` that is the damped iteration.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(v, rows)`` returns residual and Jacobian of the systems numbered ``rows`` at ``v``.
    start : array (m, n)
    known : array (m, k, n), optional
        Solutions to keep away from (nan rows are ignored): the residual is deflated, multiplied by
        ``prod (1 + 1/|v - known|²)``, so that the iteration cannot converge to them again.
    patience, damped_steps : int
        After ``patience`` refused Newton steps a row takes ``damped_steps`` damped ones.

    Examples
    --------
    >>> def circle(v, rows):
    ...     x, y = v.T
    ...     r = np.stack([x**2 + y**2 - 1, x - y], axis=1)
    ...     return r, np.stack([np.stack([2 * x, 2 * y], 1), np.stack([1 + 0 * x, -1 + 0 * y], 1)], 1)
    >>> first = newton(circle, np.array([[1.0, 0.5]]))
    >>> second = newton(circle, np.array([[1.0, 0.5]]), known=first.v[:, None])
    >>> first.v.round(6), second.v.round(6)
    (array([[0.707107, 0.707107]]), array([[-0.707107, -0.707107]]))
    """
    v = np.array(start, dtype=np.float64, copy=True)
    m = v.shape[0]
    radius = np.full(m, max_step)
    status = np.full(m, Status.ITERATION_LIMIT, dtype=object)
    iterations = np.zeros(m, dtype=np.int64)
    everyone = np.arange(m)
    with np.errstate(all="ignore"):
        residual, jacobian = evaluate(v, everyone)
        norm = np.abs(residual).max(axis=1, initial=0.0)
        merit = norm.copy() if known is None else norm * _deflation(v, known, everyone)[0]
        active = np.isfinite(norm)
        status[~active] = Status.OUT_OF_RANGE
        best_v, best_norm = v.copy(), np.where(active, norm, np.inf)
        damped, refusals = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        for _ in range(max_iterations):
            rows = np.flatnonzero(active)
            if not rows.size:
                break
            iterations[rows] += 1
            step = solve_rows(jacobian[rows], -residual[rows])
            if known is not None:
                _, gradient = _deflation(v[rows], known[rows], rows)
                # Newton step of the deflated residual, from the plain one (Sherman-Morrison)
                step = step / _away_from_zero(1.0 - (gradient * step).sum(axis=1))[:, None]
            broken = ~np.isfinite(step).all(axis=1) | (damped[rows] > 0)
            step[broken] = -0.5 * residual[rows][broken]
            size = np.abs(step).max(axis=1)
            scale = np.minimum(1.0, radius[rows] / np.maximum(size, 1e-300))
            trial = np.clip(v[rows] + step * scale[:, None], lower, upper)
            r, j = evaluate(trial, rows)
            trial_norm = np.abs(r).max(axis=1)
            trial_merit = trial_norm
            if known is not None:
                trial_merit = trial_norm * _deflation(trial, known[rows], rows)[0]
            better = np.isfinite(trial_norm) & np.isfinite(j).all(axis=(1, 2))
            accept = better & ((trial_merit < merit[rows]) | (damped[rows] > 0))
            finished = norm[rows] < tolerance
            accept &= ~finished | (trial_norm < 0.5 * norm[rows])
            taken = rows[accept]
            v[taken], residual[taken], jacobian[taken] = trial[accept], r[accept], j[accept]
            norm[taken], merit[taken] = trial_norm[accept], trial_merit[accept]
            improved = taken[norm[taken] < best_norm[taken]]
            best_v[improved], best_norm[improved] = v[improved], norm[improved]
            radius[taken] = np.minimum(max_step, np.maximum(radius[taken], 2.0 * (size * scale)[accept]))
            damped[taken] = np.maximum(damped[taken] - 1, 0)
            refused = rows[~accept & ~finished]
            radius[refused] = 0.25 * np.minimum(radius[refused], size[~accept & ~finished])
            # Newton cannot descend from here: walk a few damped steps, then try again
            refusals[taken] = 0
            refusals[refused] += 1
            lost = refused[refusals[refused] >= patience]
            again = lost[iterations[lost] < max_iterations - 2 * damped_steps]
            damped[again], radius[again], refusals[again] = damped_steps, max_step, 0
            gone = lost[iterations[lost] >= max_iterations - 2 * damped_steps]
            gone = gone[radius[gone] < 1e-7 * (1.0 + np.abs(v[gone]).max(axis=1, initial=0.0))]
            status[gone], active[gone] = Status.STALLED, False
            done = rows[(finished & ~accept) | (norm[rows] <= floor)]
            status[done], active[done] = Status.CONVERGED, False
    out = np.isfinite(best_norm)
    v[out], norm[out] = best_v[out], best_norm[out]
    near = out & (norm < tolerance)
    status[near] = Status.CONVERGED
    return NewtonResult(v=v, residual=norm, iterations=iterations, status=status)


def _deflation(v: Array, known: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
    """Deflation factor prod (1 + 1/d²) and the gradient of its logarithm."""
    known = known if len(known) == len(v) else known[rows]
    difference = v[:, None, :] - known
    square = np.maximum((difference**2).sum(axis=2), 1e-280)
    valid = np.isfinite(square)
    term = np.where(valid, 1.0 + 1.0 / np.where(valid, square, 1.0), 1.0)
    weight = np.where(valid, -2.0 / (np.where(valid, square, 1.0) ** 2 * term), 0.0)
    gradient = (weight[..., None] * np.where(valid[..., None], difference, 0.0)).sum(axis=1)
    return term.prod(axis=1), gradient


def _away_from_zero(x: Array) -> Array:
    return np.where(np.abs(x) < 1e-12, np.where(x < 0.0, -1e-12, 1e-12), x)
