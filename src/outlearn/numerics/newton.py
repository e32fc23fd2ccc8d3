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
    with np.errstate(all="ignore"):
        try:
            return np.asarray(np.linalg.solve(jacobian, residual[..., None])[..., 0], dtype=np.float64)
        except np.linalg.LinAlgError:
            step = np.full(residual.shape, np.nan)
            good = np.isfinite(jacobian).all(axis=(1, 2)) & np.isfinite(residual).all(axis=1)
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
    status = np.full(m, Status.ITERATION_LIMIT, dtype=object)
    iterations = np.zeros(m, dtype=np.int64)
    with np.errstate(all="ignore"):
        residual, jacobian = evaluate(v, np.arange(m))
        norm = np.abs(residual).max(axis=1, initial=0.0)
        usable = np.isfinite(norm)
        status[~usable] = Status.OUT_OF_RANGE
        best_v, best_norm = v.copy(), norm.copy()
        # from here on the arrays hold only the rows that are still moving; ``rows`` numbers them
        rows = np.flatnonzero(usable)
        v, residual, jacobian, norm = v[rows], residual[rows], jacobian[rows], norm[rows]
        known = None if known is None else known[rows]
        merit = norm if known is None else norm * _deflation(v, known)[0]
        radius = np.full(rows.size, max_step)
        damped, refusals = np.zeros(rows.size, dtype=np.int64), np.zeros(rows.size, dtype=np.int64)
        for count in range(1, max_iterations + 1):
            if not rows.size:
                break
            iterations[rows] = count
            step = solve_rows(jacobian, -residual)
            if known is not None:
                # Newton step of the deflated residual, from the plain one (Sherman-Morrison)
                gradient = _deflation(v, known)[1]
                step = step / _away_from_zero(1.0 - (gradient * step).sum(axis=1))[:, None]
            size = np.abs(step).max(axis=1)
            plain = (damped > 0) | ~np.isfinite(size)
            if plain.any():
                step[plain] = -0.5 * residual[plain]
                size = np.abs(step).max(axis=1)
            scale = np.minimum(1.0, radius / np.maximum(size, 1e-300))
            trial = np.minimum(np.maximum(v + step * scale[:, None], lower), upper)
            r, j = evaluate(trial, rows)
            trial_norm = np.abs(r).max(axis=1)
            trial_merit = trial_norm if known is None else trial_norm * _deflation(trial, known)[0]
            finished = norm < tolerance
            descends = np.where(finished, trial_norm < 0.5 * norm, (trial_merit < merit) | (damped > 0))
            accept = descends & np.isfinite(trial_norm) & np.isfinite(j).all(axis=(1, 2))
            v, residual = np.where(accept[:, None], trial, v), np.where(accept[:, None], r, residual)
            jacobian = np.where(accept[:, None, None], j, jacobian)
            norm, merit = np.where(accept, trial_norm, norm), np.where(accept, trial_merit, merit)
            improved = norm < best_norm[rows]
            best_v[rows[improved]], best_norm[rows[improved]] = v[improved], norm[improved]
            longer, shorter = np.maximum(radius, 2.0 * size * scale), 0.25 * np.minimum(radius, size)
            radius = np.where(accept, np.minimum(max_step, longer), shorter)
            damped = np.maximum(damped - accept, 0)
            refusals = np.where(accept, 0, refusals + 1)
            done = (finished & ~accept) | (norm <= floor)
            lost = ~finished & (refusals >= patience)
            stalled = np.zeros_like(done)
            if count < max_iterations - 2 * damped_steps:
                # Newton cannot descend from here: walk a few damped steps, then try again
                damped[lost], radius[lost], refusals[lost] = damped_steps, max_step, 0
            else:
                stalled = lost & (radius < 1e-7 * (1.0 + np.abs(v).max(axis=1, initial=0.0)))
            status[rows[done]], status[rows[stalled]] = Status.CONVERGED, Status.STALLED
            on = ~(done | stalled)
            if not on.all():
                rows, v, residual, jacobian, norm = rows[on], v[on], residual[on], jacobian[on], norm[on]
                merit, radius, damped, refusals = merit[on], radius[on], damped[on], refusals[on]
                known = None if known is None else known[on]
    status[best_norm < tolerance] = Status.CONVERGED
    return NewtonResult(v=best_v, residual=best_norm, iterations=iterations, status=status)


def _deflation(v: Array, known: Array) -> tuple[Array, Array]:
    """Deflation factor prod (1 + 1/d²) and the gradient of its logarithm."""
    difference = v[:, None, :] - known
    square = np.maximum((difference**2).sum(axis=2), 1e-280)
    valid = np.isfinite(square)
    term = np.where(valid, 1.0 + 1.0 / np.where(valid, square, 1.0), 1.0)
    weight = np.where(valid, -2.0 / (np.where(valid, square, 1.0) ** 2 * term), 0.0)
    gradient = (weight[..., None] * np.where(valid[..., None], difference, 0.0)).sum(axis=1)
    return term.prod(axis=1), gradient


def _away_from_zero(x: Array) -> Array:
    return np.where(np.abs(x) < 1e-12, np.where(x < 0.0, -1e-12, 1e-12), x)
