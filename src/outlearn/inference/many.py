"""Many small problems in one call: the whole EM loop of a run is compiled, the runs share bounded threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.kernels import pass_over_rows
from outlearn.inference.results import FitStatus
from outlearn.inference.selection import Beliefs, gate_offset, posterior_spread, prior_energy
from outlearn.model.checks import generator

__all__ = ["ManyFits", "hard_em_many", "soft_em_many"]

Array = NDArray[np.float64]
Fill = Callable[[int, NDArray[Any], Array], None]
_BLOCK = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ManyFits:
    """Fits of many runs as arrays, one row each; of several starts the lowest energy.

    ``total_weights`` is the sum of the inlier probabilities (N Q_hat for hard selection); ``winners`` tells
    which start won; ``inlier_probas`` is None unless it was asked for.
    """

    centers: Array
    energies: Array
    n_iter: NDArray[np.int64]
    residuals: Array
    total_weights: Array
    winners: NDArray[np.int64]
    status: tuple[FitStatus, ...]
    inlier_probas: NDArray[np.float64] | None = None

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which runs reached a fixed point."""
        return np.array([status.converged for status in self.status])

    def to_frame(self) -> Any:
        """Return a pandas table, one row for each run, without the centres."""
        import pandas as pd

        return pd.DataFrame(
            {
                "energy": self.energies,
                "n_iter": self.n_iter,
                "residual": self.residuals,
                "total_weight": self.total_weights,
                "winner": self.winners,
                "status": [status.name for status in self.status],
            }
        )

    def __repr__(self) -> str:
        runs, n = self.centers.shape
        return (
            f"ManyFits: {runs} runs in {n} dimensions, {int(self.converged.sum())} converged, "
            f"{self.n_iter.mean():.1f} steps on average"
        )


def soft_em_many(
    X: NDArray[Any] | Fill,
    y: ArrayLike | None = None,
    *,
    contamination: ArrayLike,
    noise_variance: ArrayLike,
    center_variance: ArrayLike | None = None,
    shape: tuple[int, int, int] | None = None,
    dtype: Any = np.float64,
    init: str | ArrayLike = "hebb",
    n_init: int = 1,
    max_iter: int = 1000,
    tol: float = 1e-6,
    accelerate: bool = False,
    keep_proba: bool = False,
    rng: np.random.Generator | int | None = None,
    n_threads: int = 1,
) -> ManyFits:
    """Run :func:`~outlearn.inference.soft.soft_em` on many small problems of one shape.

    Parameters
    ----------
    X : array (runs, P, N), or function
        float32 or float64. A function ``fill(run, X, y)`` writes one run's data into the buffers it is given
        (``y`` starts as ones: leave it for folded rows); it is called from worker threads, and then ``shape``
        and ``dtype`` say how large the runs are.
    y : array (runs, P) of -1 and +1, optional
    contamination, noise_variance, center_variance : float or array (runs,)
        Hyper-parameters, held fixed; 0 < contamination < 1.
    init : str or array
        "hebb"; "random": ``n_init`` draws from the prior; "auto": both; or centres (runs, N) or (runs, K, N).
    accelerate : bool
        Off: which basin a run ends in is then that of plain EM.
    keep_proba : bool
        Return the inlier probability of every example, too.
    n_threads : int
        Runs that are worked on at once. Results do not depend on it.

    Examples
    --------
    >>> from outlearn.model import Ensemble, sample
    >>> ensemble = Ensemble(eta=0.0, gamma=10.0)
    >>> def fill(run, X, y):
    ...     data = sample(ensemble, 20, 400, rng=run)
    ...     X[...], y[...] = data.X, data.y
    >>> soft_em_many(fill, shape=(5, 400, 20), contamination=0.5, noise_variance=0.1).converged.all()
    np.True_
    """
    return _fit_many(
        X, y, False, contamination, noise_variance, center_variance, shape, dtype, init, n_init, max_iter,
        tol, accelerate, keep_proba, rng, n_threads,
    )  # fmt: skip


def hard_em_many(
    X: NDArray[Any] | Fill,
    y: ArrayLike | None = None,
    *,
    contamination: ArrayLike,
    noise_variance: ArrayLike,
    center_variance: ArrayLike | None = None,
    shape: tuple[int, int, int] | None = None,
    dtype: Any = np.float64,
    init: str | ArrayLike = "hebb",
    n_init: int = 1,
    max_iter: int = 1000,
    tol: float = 1e-6,
    keep_proba: bool = False,
    rng: np.random.Generator | int | None = None,
    n_threads: int = 1,
) -> ManyFits:
    """Run :func:`~outlearn.inference.hard.hard_em` on many small problems; see :func:`soft_em_many`."""
    return _fit_many(
        X, y, True, contamination, noise_variance, center_variance, shape, dtype, init, n_init, max_iter,
        tol, False, keep_proba, rng, n_threads,
    )  # fmt: skip


def _fit_many(
    X: Any,
    y: ArrayLike | None,
    hard: bool,
    contamination: ArrayLike,
    noise_variance: ArrayLike,
    center_variance: ArrayLike | None,
    shape: tuple[int, int, int] | None,
    dtype: Any,
    init: str | ArrayLike,
    n_init: int,
    max_iter: int,
    tol: float,
    accelerate: bool,
    keep_proba: bool,
    rng: np.random.Generator | int | None,
    n_threads: int,
) -> ManyFits:
    fill, (runs, p, n), dtype = _source(X, y, shape, dtype)
    beliefs = _beliefs(contamination, noise_variance, center_variance, runs, n)
    for name, value in (("n_init", n_init), ("max_iter", max_iter), ("n_threads", n_threads)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(name, value, "a whole number >= 1")
    if not 0.0 < float(tol) < 1.0:
        raise ParameterError("tol", tol, "0 < tol < 1")
    given = _given(init, runs, n)
    # Every run has its own stream, so that results depend neither on threads nor on the other runs.
    streams = generator("rng", rng).spawn(runs) if given is None and init != "hebb" else None

    centers, scores = np.zeros((runs, n)), np.zeros((runs, 4))
    winners, done = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=bool)
    probas = np.zeros((runs, p)) if keep_proba else None

    def starts_of(run: int, data: NDArray[Any], signs: Array) -> Array:
        if given is not None:
            return given[run]
        rows = []
        belief = beliefs[run]
        if init in ("hebb", "auto"):
            ratio = belief.noise_variance / belief.center_variance
            rows.append((signs.astype(data.dtype) @ data).astype(np.float64) / (p + ratio))
        if streams is not None:
            scale = math.sqrt(belief.center_variance)
            rows += [scale * streams[run].standard_normal(n) for _ in range(n_init)]
        return np.array(rows)

    def work(chunk: range) -> None:
        data, signs = np.empty((p, n), dtype), np.ones(p)
        ones, weights = np.ones(p), np.empty(p)
        for run in chunk:
            signs[:] = 1.0
            current = fill(run, data, signs)
            belief = beliefs[run]
            constant = _constant(current, belief, run)
            best = math.inf
            for k, center in enumerate(starts_of(run, current, signs)):
                end = np.array(center)
                energy, steps, residual, total, ok = _climb(
                    current, signs, ones, weights, end, belief.noise_variance, belief.center_variance,
                    belief.eta, hard, accelerate, tol, max_iter,
                )  # fmt: skip
                if k == 0 or energy < best:
                    best = energy
                    centers[run], winners[run], done[run] = end, k, ok
                    scores[run] = energy + constant, steps, residual, total
                    if probas is not None:
                        probas[run] = weights

    chunks = [range(k, runs, n_threads) for k in range(min(n_threads, runs))]
    if len(chunks) == 1:
        work(chunks[0])
    else:
        with ThreadPoolExecutor(len(chunks)) as pool:
            list(pool.map(work, chunks))
    status = tuple(
        FitStatus.of(
            converged=bool(done[run]),
            kept=float(scores[run, 3]),
            square=float(centers[run] @ centers[run]),
            n_features=n,
            noise_variance=beliefs[run].noise_variance,
        )
        for run in range(runs)
    )
    return ManyFits(
        centers=centers,
        energies=scores[:, 0].copy(),
        n_iter=scores[:, 1].astype(np.int64),
        residuals=scores[:, 2].copy(),
        total_weights=scores[:, 3].copy(),
        winners=winners,
        status=status,
        inlier_probas=probas,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _step(
    X: Any, signs: Any, ones: Any, weights: Any, c: Any, spread: Any, s2: Any, tau2: Any, eta: Any, hard: Any,
    after: Any,
) -> Any:  # fmt: skip
    """One pass and M step: energy without constants, total weight, spread, residual, posterior energy."""
    p, n = X.shape
    square = 0.0
    for j in range(n):
        square += c[j] * c[j]
    after[:] = 0.0
    offset = gate_offset(square, n, spread, s2, eta)
    total, loss, _ = pass_over_rows(
        X, 0, p, _BLOCK, signs, ones, c, 0.0, 1.0 / s2, offset, hard, weights, after
    )
    gain, new_square, change = 0.0, 0.0, 0.0
    for j in range(n):
        gain += c[j] * after[j]
        after[j] /= total + s2 / tau2
        new_square += after[j] * after[j]
        change += (after[j] - c[j]) ** 2
    energy = prior_energy(square, n, spread, tau2) - loss
    new_spread = posterior_spread(total, s2, tau2) if hard else 0.0
    # F with the weights held, before and after the centre moves
    new_gain = new_square * (total + s2 / tau2)
    held = prior_energy(square, n, spread, tau2) - (gain - 0.5 * total * (square + n * spread)) / s2
    moved = prior_energy(new_square, n, new_spread, tau2)
    moved -= (new_gain - 0.5 * total * (new_square + n * new_spread)) / s2
    size = max(square, new_square)
    residual = math.sqrt(change / size) if size > 0.0 else 0.0
    return energy, total, new_spread, residual, energy - held + moved


@njit(cache=True, nogil=True, error_model="numpy")
def _climb(
    X: Any, signs: Any, ones: Any, weights: Any, c: Any, s2: Any, tau2: Any, eta: Any, hard: Any,
    accelerate: Any, tol: Any, max_iter: Any,
) -> Any:  # fmt: skip
    """EM from ``c``, which becomes the end: the schemes of ``acceleration`` on one compiled problem."""
    p, n = X.shape
    kept = p / (1.0 + math.exp(eta))
    spread = posterior_spread(kept, s2, tau2) if hard else 0.0
    x0, x1, x2, trial, image = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    x0[:] = c
    energy, total, new_spread, residual, _ = _step(
        X, signs, ones, weights, x0, spread, s2, tau2, eta, hard, x1
    )
    n_iter = 1
    while residual > tol and n_iter < max_iter:
        spread = new_spread
        energy, total, new_spread, residual, _ = _step(
            X, signs, ones, weights, x1, spread, s2, tau2, eta, hard, x2
        )
        n_iter += 1
        if residual <= tol or n_iter >= max_iter:
            x1[:] = x2
            break
        jumped = False
        if accelerate:
            turn, bend = 0.0, 0.0
            for j in range(n):
                turn += (x1[j] - x0[j]) ** 2
                bend += (x2[j] - 2.0 * x1[j] + x0[j]) ** 2
            if turn > bend > 0.0:
                t = math.sqrt(turn / bend)
                for j in range(n):
                    trial[j] = x0[j] + 2.0 * t * (x1[j] - x0[j]) + t * t * (x2[j] - 2.0 * x1[j] + x0[j])
                found = _step(X, signs, ones, weights, trial, 0.0, s2, tau2, eta, hard, image)
                n_iter += 1
                if found[0] <= energy + 2e-15 * p * n:
                    energy, total, new_spread, residual, _ = found
                    x0[:] = trial
                    x1[:] = image
                    jumped = True
                elif n_iter >= max_iter:
                    x1[:] = x2
                    break
        if not jumped:
            if accelerate:
                x0[:] = x2
                energy, total, new_spread, residual, _ = _step(
                    X, signs, ones, weights, x0, new_spread, s2, tau2, eta, hard, x1
                )
                n_iter += 1
            else:
                x1[:] = x2
    # The last EM step is taken, and its energy and weights are those returned.
    energy, total, _, _, posterior_energy = _step(
        X, signs, ones, weights, x1, new_spread, s2, tau2, eta, hard, x2
    )
    c[:] = x2 if hard else x1
    return posterior_energy if hard else energy, n_iter, residual, total, residual <= tol


def _source(
    X: Any, y: ArrayLike | None, shape: tuple[int, int, int] | None, dtype: Any
) -> tuple[Callable[[int, NDArray[Any], Array], NDArray[Any]], tuple[int, int, int], np.dtype[Any]]:
    if callable(X):
        if shape is None or len(shape) != 3 or min(shape) < 1:
            raise ParameterError("shape", shape, "(runs, n_samples, n_features) where X is a function")
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise ParameterError("dtype", kind.name, "float32 or float64")

        def from_function(run: int, data: NDArray[Any], signs: Array) -> NDArray[Any]:
            X(run, data, signs)
            _check_signs(signs, run)
            return data

        return from_function, (int(shape[0]), int(shape[1]), int(shape[2])), kind
    if (
        not isinstance(X, np.ndarray)
        or X.ndim != 3
        or 0 in X.shape
        or X.dtype not in (np.float32, np.float64)
    ):
        raise DataError("X must be a float32 or float64 array (runs, n_samples, n_features), or a function")
    if y is not None:
        try:
            labels = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError("labels must be -1 or +1") from None
        if labels.shape != X.shape[:2]:
            raise DataError(f"labels have shape {labels.shape}, X has shape {X.shape}")

    def from_array(run: int, data: NDArray[Any], signs: Array) -> NDArray[Any]:
        if y is not None:
            signs[:] = labels[run]
            _check_signs(signs, run)
        return np.ascontiguousarray(X[run])

    return from_array, X.shape, X.dtype


def _check_signs(signs: Array, run: int) -> None:
    if not (np.abs(signs) == 1.0).all():
        raise DataError(f"labels must be -1 or +1 (run {run})")


def _beliefs(
    contamination: ArrayLike, noise_variance: ArrayLike, center_variance: ArrayLike | None, runs: int, n: int
) -> list[Beliefs]:
    columns = []
    values = (contamination, noise_variance, 1.0 / n if center_variance is None else center_variance)
    for name, value in zip(("contamination", "noise_variance", "center_variance"), values, strict=True):
        try:
            columns.append(np.broadcast_to(np.asarray(value, dtype=np.float64), (runs,)))
        except (TypeError, ValueError):
            raise ParameterError(name, value, f"a number, or {runs} numbers") from None
    beliefs = [Beliefs.of(a, b, c, n) for a, b, c in zip(*columns, strict=True)]
    if not all(belief.contamination > 0.0 for belief in beliefs):
        raise ParameterError("contamination", 0.0, "0 < contamination < 1 (without outliers: hebb)")
    return beliefs


def _given(init: str | ArrayLike, runs: int, n: int) -> Array | None:
    if isinstance(init, str):
        if init not in ("hebb", "random", "auto"):
            raise ParameterError("init", init, "'hebb', 'random', 'auto' or an array")
        return None
    centers = np.array(init, dtype=np.float64)
    if centers.ndim == 2:
        centers = centers[:, None, :]
    if (
        centers.ndim != 3
        or (centers.shape[0], centers.shape[2]) != (runs, n)
        or not np.isfinite(centers).all()
    ):
        raise DataError(f"init must be finite centres ({runs}, {n}) or ({runs}, K, {n})")
    return centers


def _constant(data: NDArray[Any], belief: Beliefs, run: int) -> float:
    """What the energy adds to -loss + prior; finite only for finite data, which is how they are checked."""
    p, n = data.shape
    flat = data.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        square_sum = float(np.einsum("i,i->", flat, flat, dtype=np.float64))
    if not math.isfinite(square_sum):
        raise DataError(f"X contains NaN, infinity or a value too large to square (run {run})")
    s2 = belief.noise_variance
    noise = p * math.log(2.0) + 0.5 * p * n * math.log(2.0 * math.pi * s2) + 0.5 * square_sum / s2
    return noise + p * float(np.logaddexp(0.0, -belief.eta))
