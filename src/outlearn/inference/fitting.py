"""What soft and hard selection share: check, start, descend, pick the lowest energy, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.acceleration import Climb, Path, descend, plain, squarem
from outlearn.inference.gram import Reduction
from outlearn.inference.results import FitResult, FitStatus, StartOutcome
from outlearn.inference.rows import Reads, Rows
from outlearn.inference.selection import Beliefs, Selection
from outlearn.inference.starts import planned
from outlearn.model.checks import count, generator

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
    init: str | ArrayLike,
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
    n_init = count("n_init", n_init, least=0)
    max_iter = count("max_iter", max_iter)
    if isinstance(tol, bool) or not isinstance(tol, Real) or not 0.0 < float(tol) < 1.0:
        raise ParameterError("tol", tol, "0 < tol < 1")
    reads = readable(X, y, sample_weight, n_threads)
    beliefs = Beliefs.of(contamination, noise_variance, center_variance, reads.shape[1])
    problem = Selection(reads, hard=hard, learn=learn)
    stream = generator("rng", rng)
    climbs = [
        Climb(
            name,
            problem.state(make(problem, beliefs, stream), beliefs),
            tol=_reachable(tol, reads),
            max_iter=max_iter,
        )
        for name, make in planned(init, n_init, hard, reads.shape[1])
    ]
    scheme = squarem if accelerate else plain
    going = descend(problem, climbs, scheme, Reduction.patience(reads, len(climbs)))
    if going and isinstance(reads, Rows):
        _descend_reduced(Reduction(problem, reads), going, scheme)
    return _report(problem, climbs, trace)


def _descend_reduced(reduction: Reduction, climbs: list[Climb], scheme: Callable[[Climb], Path]) -> None:
    """Finish climbs among inner products, and bring their ends back."""
    entered = reduction.enter([climb.ahead for climb in climbs])
    still = []
    for climb, (step, state) in zip(climbs, entered, strict=True):
        climb.n_iter += 1
        if not climb.accept(step):
            climb.start = state
            still.append(climb)
    if not still:
        return
    descend(reduction.problem, still, scheme)
    steps = [climb.last for climb in still if climb.last is not None]
    for climb, step, state in zip(still, steps, reduction.leave(steps), strict=True):
        climb.last = replace(step, next=state)


def _report(problem: Selection, climbs: list[Climb], trace: bool) -> FitResult:
    best = min(climbs, key=lambda climb: climb.energies[-1])
    step, weights = problem.weigh(best.ahead)
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
    a, b = climb.ahead.center, best.ahead.center
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
    end = climb.ahead
    return FitStatus.of(
        converged=climb.converged,
        kept=climb.total_weight * problem.reads.shape[0] / problem.n_examples,
        square=float(end.center @ end.center),
        n_features=problem.n_features,
        noise_variance=end.noise_variance,
    )


def _contamination(eta: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -eta)))


def _reachable(tol: float, reads: Reads) -> float:
    """The tolerance asked for, or what rounding in the products with the data allows."""
    return max(float(tol), 16 * float(np.finfo(getattr(reads, "dtype", np.float64)).eps))
