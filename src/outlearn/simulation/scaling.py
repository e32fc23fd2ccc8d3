"""Finite-size scaling: where the transition sets in at each N, and where it goes as N grows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from outlearn.exceptions import DataError, ParameterError
from outlearn.model.checks import choice, count, numbers, positive
from outlearn.simulation.onset import Array, Samples, binder_crossing, broadening, variance_peak
from outlearn.simulation.statistics import TaskStats
from outlearn.simulation.task import Task

__all__ = [
    "ESTIMATORS",
    "Comparison",
    "FiniteSizeScaling",
    "Onset",
    "compare_with_theory",
    "finite_size_scaling",
]

ESTIMATORS = ("broadening", "binder", "variance")
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """Where the transition is at one size (the Binder crossing: at the geometric mean of two sizes).

    ``low`` and ``high`` bound it with 95 % of the bootstrap; ``resolved`` is the part of the resampled data
    in which it could be located at all.
    """

    n_features: float
    eta: float
    low: float
    high: float
    resolved: float

    @property
    def informative_fraction(self) -> float:
        """V̄ = 1/(1 + e^η), the variable of the paper's inset."""
        return float(expit(-self.eta))

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers."""
        return {
            "n_features": self.n_features,
            "eta": self.eta,
            "low": self.low,
            "high": self.high,
            "informative_fraction": self.informative_fraction,
            "resolved": self.resolved,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteSizeScaling:
    """One estimator at every size, and the straight line in N^(-exponent) through V̄ that it follows.

    ``eta``, ``low``, ``high`` are the extrapolation to N = ∞ with its 95 % bootstrap interval; ``slope`` is
    that of V̄ against N^(-exponent); ``misfit`` is chi-square per degree of freedom of the sizes about the
    line, with their bootstrap errors: about 1 where the law holds, NaN of two sizes.
    """

    estimator: str
    task: Task
    exponent: float
    onsets: tuple[Onset, ...]
    eta: float
    low: float
    high: float
    slope: float
    misfit: float

    @property
    def informative_fraction(self) -> float:
        """V̄₀ at N = ∞."""
        return float(expit(-self.eta))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the extrapolation, and one row a size."""
        return {
            "estimator": self.estimator,
            "exponent": self.exponent,
            "eta": self.eta,
            "low": self.low,
            "high": self.high,
            "informative_fraction": self.informative_fraction,
            "slope": self.slope,
            "misfit": self.misfit,
            "onsets": [onset.to_dict() for onset in self.onsets],
        }

    def to_frame(self) -> Any:
        """Return a pandas table, one row a size, the last one for N = ∞."""
        import pandas as pd

        rows = [onset.to_dict() for onset in self.onsets]
        limit = {
            "n_features": np.inf,
            "eta": self.eta,
            "low": self.low,
            "high": self.high,
            "informative_fraction": self.informative_fraction,
        }
        return pd.DataFrame([{"estimator": self.estimator} | row for row in [*rows, limit]])

    def __repr__(self) -> str:
        sizes = ", ".join(f"N={onset.n_features:g}: {onset.eta:.3g}" for onset in self.onsets)
        return (
            f"FiniteSizeScaling({self.estimator}: eta = {self.eta:.4g} [{self.low:.4g}, {self.high:.4g}] "
            f"at N = inf; {sizes})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An extrapolated onset beside the exact theory's transition that lies nearest.

    ``value`` is where the free energies are equal; between the spinodals both states exist, so that runs,
    which see no free energies but basins, may change over anywhere there.
    """

    scaling: FiniteSizeScaling
    value: float
    lower_spinodal: float | None
    upper_spinodal: float | None

    @property
    def agrees(self) -> bool:
        """Whether the interval of the extrapolation meets the interval between the spinodals."""
        low = self.value if self.lower_spinodal is None else self.lower_spinodal
        high = self.value if self.upper_spinodal is None else self.upper_spinodal
        return self.scaling.low <= high and low <= self.scaling.high

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {
            "estimator": self.scaling.estimator,
            "exponent": self.scaling.exponent,
            "eta": self.scaling.eta,
            "low": self.scaling.low,
            "high": self.scaling.high,
            "misfit": self.scaling.misfit,
            "theory": self.value,
            "lower_spinodal": self.lower_spinodal,
            "upper_spinodal": self.upper_spinodal,
            "agrees": self.agrees,
        }


def compare_with_theory(scaling: FiniteSizeScaling, between: tuple[float, float] | None = None) -> Comparison:
    """Put the extrapolation beside the first-order transition of the exact theory that lies nearest to it.

    ``between`` is the interval of η that is searched; two units around all onsets when left out. DataError
    if the theory has no transition there, or the extrapolation failed.
    """
    from outlearn import theory

    if not isinstance(scaling, FiniteSizeScaling):
        raise ParameterError("scaling", scaling, "a FiniteSizeScaling")
    if between is not None:
        numbers("between", between, "two increasing numbers", lambda x: len(x) == 2 and x[0] < x[1])
    learners: dict[str, Any] = {
        "soft": theory.SoftSelection,
        "hard": theory.HardSelection,
        "hebb": theory.Hebb,
        "amp": theory.BayesOptimal,
    }
    known = [onset.eta for onset in scaling.onsets if np.isfinite(onset.eta)]
    if not known or not np.isfinite(scaling.eta):
        raise DataError(f"the {scaling.estimator} estimator found no transition to compare")
    low, high = (min(known) - 2.0, max(known) + 2.0) if between is None else between
    task = scaling.task
    found = theory.transitions(
        learners[task.learner](), task.ensemble, task.alpha, over="eta", between=(low, high)
    )
    if not found:
        raise DataError(f"the theory of {task.label()} has no transition for eta in [{low:g}, {high:g}]")
    nearest = min(found, key=lambda transition: abs(transition.value - scaling.eta))
    return Comparison(
        scaling=scaling,
        value=nearest.value,
        lower_spinodal=nearest.lower_spinodal,
        upper_spinodal=nearest.upper_spinodal,
    )


def finite_size_scaling(
    runs: Iterable[tuple[Task, TaskStats]],
    estimator: str = "broadening",
    *,
    exponent: float = 1.0,
    bootstrap: int = 400,
    seed: int = 0,
) -> FiniteSizeScaling:
    """Locate the transition at each size and extrapolate it to N = ∞.

    Parameters
    ----------
    runs : CampaignResult, or pairs of Task and TaskStats
        The same learner, α, γ and start at several N and several η.
    estimator : {"broadening", "binder", "variance"}
        How it is located: :func:`broadening`, :func:`binder_crossing` of neighbouring sizes, or
        :func:`variance_peak`.
    exponent : float
        V̄ is taken to be a straight line in N^(-exponent); 1 is the paper's.
    bootstrap : int
        How often the runs of every point are resampled for the intervals.
    seed : int
        Of the resampling.
    """
    choice("estimator", estimator, ESTIMATORS)
    positive("exponent", exponent)
    count("bootstrap", bootstrap, least=0)
    count("seed", seed, least=0)
    task, etas, table = _arrange(runs, 3 if estimator == "binder" else 2)
    rng = np.random.default_rng(seed)
    sizes, best = _locate(estimator, etas, table)
    draws = np.array([_locate(estimator, etas, _resample(table, rng))[1] for _ in range(bootstrap)]).reshape(
        bootstrap, len(sizes)
    )
    onsets = tuple(
        Onset(
            n_features=size,
            eta=value,
            resolved=float(np.isfinite(column).mean()) if bootstrap else float("nan"),
            **dict(zip(("low", "high"), _interval(column), strict=True)),
        )
        for size, value, column in zip(sizes, best, draws.T, strict=True)
    )
    x = np.asarray(sizes) ** -exponent
    errors = _errors(draws)
    limit, slope, misfit = _line(x, np.asarray(best), errors)
    limits = np.array([_line(x, row, errors)[0] for row in draws])
    low, high = _interval(limits)
    return FiniteSizeScaling(
        estimator=estimator,
        task=task,
        exponent=exponent,
        onsets=onsets,
        eta=limit,
        low=low,
        high=high,
        slope=slope,
        misfit=misfit,
    )


def _arrange(
    runs: Iterable[tuple[Task, TaskStats]], least: int
) -> tuple[Task, Mapping[int, Array], Mapping[int, Samples]]:
    """Sort the runs by size and η; refuse those that do not belong together."""
    try:
        pairs = sorted(runs, key=lambda pair: (pair[0].n_features, pair[0].ensemble.eta))
    except (AttributeError, TypeError):
        raise ParameterError("runs", runs, "a CampaignResult, or pairs of Task and TaskStats") from None
    if not pairs:
        raise DataError("there are no runs to scale")
    families = {_family(task): task.label() for task, _ in pairs}
    if len(families) > 1:
        one, other, *_ = families.values()
        raise DataError(f"runs may differ in N and eta only; these are of different families: {one}; {other}")
    sizes = sorted({task.n_features for task, _ in pairs})
    if len(sizes) < least:
        raise DataError(f"extrapolation needs {least} sizes or more; there are {len(sizes)}")
    etas, table = {}, {}
    for size in sizes:
        mine = [(task.ensemble.eta, stats) for task, stats in pairs if task.n_features == size]
        if len(mine) < 3:
            raise DataError(f"N = {size} was run at {len(mine)} values of eta; three are needed")
        short = [eta for eta, stats in mine if stats.R.count < 2]
        if short:
            raise DataError(f"N = {size}, eta = {short[0]:g} has fewer than two runs")
        etas[size] = np.array([eta for eta, _ in mine])
        table[size] = [np.array(stats.R.values) for _, stats in mine]
    return pairs[0][0], etas, table


def _family(task: Task) -> tuple[Any, ...]:
    e = task.ensemble
    belief = None if e.eta_tilde == e.eta else e.eta_tilde
    return (task.learner, task.start, task.alpha, e.gamma, e.gamma_tilde, belief, task.learn)


def _locate(
    estimator: str, etas: Mapping[int, Array], table: Mapping[int, Samples]
) -> tuple[list[float], list[float]]:
    """Sizes, and the transition at each of them."""
    sizes = list(table)
    if estimator == "binder":
        pairs = list(itertools.pairwise(sizes))
        found = []
        for small, large in pairs:
            common, a, b = np.intersect1d(etas[small], etas[large], return_indices=True)
            if len(common) < 3:
                raise DataError(
                    f"N = {small} and N = {large} share {len(common)} values of eta; three are needed"
                )
            found.append(binder_crossing(common, [table[small][k] for k in a], [table[large][k] for k in b]))
        return [float(np.sqrt(a * b)) for a, b in pairs], found
    locate = variance_peak if estimator == "variance" else broadening
    return [float(size) for size in sizes], [locate(etas[size], table[size]) for size in sizes]


def _resample(table: Mapping[int, Samples], rng: np.random.Generator) -> dict[int, Samples]:
    return {size: [rng.choice(values, values.size) for values in samples] for size, samples in table.items()}


def _interval(values: Array) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if known.size < 2:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _errors(draws: Array) -> Array:
    """Bootstrap error of V̄ at each size; a floor keeps a size that never moves from deciding alone."""
    spread = np.array(
        [np.std(c[np.isfinite(c)]) if np.isfinite(c).sum() > 1 else np.nan for c in expit(-draws).T]
    )
    usable = spread[spread > 0.0]
    floor = 0.2 * np.median(usable) if usable.size else 1.0
    return np.where(np.isfinite(spread), np.maximum(spread, floor), np.inf)


def _line(x: Array, etas: Array, errors: Array) -> tuple[float, float, float]:
    """Weighted straight line of V̄ in x: its η at x = 0, slope, misfit. NaN below two points."""
    fraction = expit(-etas)
    use = np.isfinite(fraction) & np.isfinite(errors)
    if use.sum() < 2:
        return float("nan"), float("nan"), float("nan")
    slope, intercept = np.polyfit(x[use], fraction[use], 1, w=1.0 / errors[use])
    square = np.sum(((fraction - intercept - slope * x)[use] / errors[use]) ** 2)
    misfit = float(square / (use.sum() - 2)) if use.sum() > 2 else float("nan")
    eta = float(np.log1p(-intercept) - np.log(intercept)) if 0.0 < intercept < 1.0 else float("nan")
    return eta, float(slope), misfit
