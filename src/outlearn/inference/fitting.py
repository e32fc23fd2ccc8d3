"""What soft and hard selection share: check, start, descend, pick the lowest energy, report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.acceleration import Climb, descend, plain, squarem
from outlearn.inference.gram import Reduction
from outlearn.inference.results import FitResult, FitStatus, StartOutcome
from outlearn.inference.rows import Reads, Rows
from outlearn.inference.selection import Beliefs, Selection
from outlearn.inference.starts import IN_SPAN, planned

__all__ = ["fit", "readable"]


def readable(
    X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, n_threads: int = 1
) -> Reads:
    """Wrap an array; leave an object that already knows how to read."""
    if isinstance(X, Reads):
        if y is not None or sample_weight is not None:
            raise DataError("X brings its own labels and weights: leave out y and sample_weight")
        return X
    return Rows.of(X, y, sample_weight, n_threads)


def fit(
    X: Any,
    y: ArrayLike | None,
    *,
    hard: bool,
    contamination: float,
    noise_variance: float,
    center_variance: float | None,
    learn: Iterable[str],
    start: str | ArrayLike,
    n_init: int,
    max_iter: int,
    tol: float,
    accelerate: bool,
    sample_weight: ArrayLike | None,
    rng: np.random.Generator | int | None,
    n_threads: int,
    trace: bool,
) -> FitResult:
    """Fit one centre from several starts; see ``soft_em`` for the parameters."""
    n_init = _count("n_init", n_init, 0)
    max_iter = _count("max_iter", max_iter, 1)
    if isinstance(tol, bool | str) or not 0.0 < float(tol) < 1.0:
        raise ParameterError("tol", tol, "0 < tol < 1")
    reads = readable(X, y, sample_weight, n_threads)
    beliefs = Beliefs.of(contamination, noise_variance, center_variance, reads.shape[1])
    problem = Selection(reads, hard=hard, learn=learn)
    starts = planned(start, n_init, hard, reads.shape[1])
    stream = np.random.default_rng(rng)
    reduction = Reduction.where_it_pays(problem, len(starts)) if max_iter > 1 else None
    climbs, outside = [], []
    for name, make in starts:
        in_span = reduction is not None and name in IN_SPAN
        where = reduction.problem if reduction is not None and in_span else problem
        state = where.state(make(where, beliefs, stream), beliefs)
        climbs.append(Climb(name, state, tol=_reachable(tol, reads), max_iter=max_iter))
        if not in_span:
            outside.append(climbs[-1])
    if reduction is not None and outside:
        for climb, (step, state) in zip(outside, reduction.enter([c.start for c in outside]), strict=True):
            climb.n_iter, climb.energies, climb.start = 1, [step.energy], state
    descend(reduction.problem if reduction else problem, climbs, squarem if accelerate else plain)
    return _report(problem, reduction, climbs, trace)


def _report(problem: Selection, reduction: Reduction | None, climbs: list[Climb], trace: bool) -> FitResult:
    best = min(climbs, key=lambda climb: climb.energies[-1])
    assert best.last is not None
    step, weights = problem.weigh(reduction.leave(best.last) if reduction else best.last.next)
    final = step.state
    if problem.hard:
        final = step.posterior  # the centre goes with the selection that is returned
    return FitResult(
        center=final.center,
        inlier_proba=weights,
        energy=step.posterior_energy if problem.hard else step.energy,
        n_iter=best.n_iter,
        n_reads=problem.reads.n_reads,
        status=_status(problem, best),
        contamination=_contamination(final.eta),
        noise_variance=final.noise_variance,
        center_variance=final.center_variance,
        residual=best.residual,
        starts=tuple(_outcome(problem, climb, best) for climb in climbs),
        energies=np.array(best.energies) if trace else None,
    )


def _outcome(problem: Selection, climb: Climb, best: Climb) -> StartOutcome:
    assert climb.last is not None
    assert best.last is not None
    a, b = climb.last.next.center, best.last.next.center
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return StartOutcome(
        name=climb.name,
        energy=climb.energies[-1],
        n_iter=climb.n_iter,
        residual=climb.residual,
        status=_status(problem, climb),
        overlap=1.0 if climb is best else (float(a @ b) / norms if norms > 0.0 else 0.0),
    )


def _status(problem: Selection, climb: Climb) -> FitStatus:
    assert climb.last is not None
    end = climb.last.next
    return FitStatus.of(
        converged=climb.converged,
        kept=climb.last.total_weight * problem.reads.shape[0] / problem.n_examples,
        square=float(end.center @ end.center),
        n_features=problem.n_features,
        noise_variance=end.noise_variance,
    )


def _contamination(eta: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -eta)))


def _reachable(tol: float, reads: Reads) -> float:
    """The tolerance asked for, or what rounding in the products with the data allows."""
    return max(float(tol), 16 * float(np.finfo(getattr(reads, "dtype", np.float64)).eps))


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(name, value, f"a whole number >= {least}")
    return int(value)
