"""Bayes-optimal selection: the posterior mean of the centres, by message passing or by sampling."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from outlearn.estimators.base import Finished, SelectionClassifier
from outlearn.exceptions import ParameterError
from outlearn.inference.amp import AmpResult, amp
from outlearn.inference.covariance import Covariance
from outlearn.inference.gibbs import GibbsResult, gibbs
from outlearn.inference.mapped import Mapped
from outlearn.inference.mixture import Beliefs, Mixture, simplex
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_fit import MixtureFit
from outlearn.inference.results import FitStatus
from outlearn.inference.rows import Rows

__all__ = ["BayesSelectionClassifier"]

Array = NDArray[np.float64]
Posterior = AmpResult | GibbsResult

_ALGORITHMS = ("auto", "amp", "gibbs")
_N_DRAWS = 400


class BayesSelectionClassifier(SelectionClassifier):
    """Learn class centres as their posterior mean: no rule has a smaller expected distance to the truth.

    The frame is that of :class:`~outlearn.SoftSelectionClassifier`: EM finds the midpoint and the form of the
    noise. In coordinates in which that noise is the same in all directions, the posterior of the centres and
    of who is informative is then found by message passing, or sampled; fractions and variances that are
    "auto" are set to the values of largest evidence (message passing) or averaged over (sampling).

    With two classes the labels fold the data into one problem. With more, each class is a problem of its own
    around the common midpoint, since its examples see no other centre; wrong labels then count as outliers.

    Parameters
    ----------
    contamination : float or "auto"
        Fraction of outliers, in [0, 1).
    algorithm : {"auto", "amp", "gibbs"}
        Message passing, sampling, or message passing and, where it does not converge, sampling instead: a
        warning says so.
    label_noise : float or "auto"
        Fraction of all examples that are informative but bear a wrong label; 0 leaves them out of the model.
    noise_variance, center_variance : float or "auto"
        Variance of a feature within a class; prior variance of a coordinate of a centre.
    covariance : {"auto", "spherical", "diag", "tied"}
        Form of the noise within a class.
    n_init, max_iter, tol, warm_start, random_state, n_jobs
        As in :class:`~outlearn.SoftSelectionClassifier`; ``max_iter`` also bounds the steps of message
        passing.

    Attributes
    ----------
    centers_, centers_std_ : array (n_classes, n_features)
        Posterior mean of the class centres; posterior standard deviation of every coordinate.
    inlier_proba_ : array (n_samples,)
        Posterior probability that each training example is informative and rightly labelled.
    algorithm_ : str
        "amp" or "gibbs": what gave the result.
    posterior_ : tuple of AmpResult or GibbsResult
        One (two classes) or one per class, in the coordinates of equal noise.
    contamination_, label_noise_, noise_variance_, center_variance_, coef_, intercept_, classes_, status_, ...
        As in :class:`~outlearn.SoftSelectionClassifier`.

    Examples
    --------
    >>> from outlearn import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.8, gamma=10.0), 50, 1000, rng=0)
    >>> model = BayesSelectionClassifier(covariance="spherical").fit(data.X, data.y)
    >>> model.algorithm_, round(model.contamination_, 1)
    ('amp', 0.8)
    """

    def __init__(
        self,
        contamination: Any = "auto",
        *,
        algorithm: str = "auto",
        label_noise: Any = 0.0,
        noise_variance: Any = "auto",
        center_variance: Any = "auto",
        covariance: str = "auto",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.contamination = contamination
        self.algorithm = algorithm
        self.label_noise = label_noise
        self.noise_variance = noise_variance
        self.center_variance = center_variance
        self.covariance = covariance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    @available_if(lambda self: False)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Not offered: the posterior needs all the data at hand."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.algorithm not in _ALGORITHMS:
            raise ParameterError("algorithm", self.algorithm, "'auto', 'amp' or 'gibbs'")

    def _finish(
        self, data: MixtureData, beliefs: Beliefs, fit: MixtureFit, rng: np.random.Generator
    ) -> Finished:
        """Posterior means in coordinates of equal noise, put in the place of the EM solution's centres."""
        m, k = fit.mixture, data.n_classes
        frame = _Frame.of(data, m)
        means, stds = np.zeros((k, frame.n_features)), np.zeros(k)
        inlier = np.zeros(len(data.labels))
        found: list[Posterior] = []
        sizes = []
        guess = frame.inward(m.means - m.midpoint)
        groups: list[Any] = [slice(None)]
        if k > 2:
            groups = [np.flatnonzero(data.labels == c) for c in range(k)]
        for c, members in enumerate(groups):
            signs = simplex(2)[data.labels, 0] if k == 2 else None
            rows = frame.rows(members, signs)
            posterior = self._posterior(rows, beliefs, m, guess[1 if k == 2 else c], rng)
            found.append(posterior)
            sizes.append(data.weights[members].sum())
            values = posterior.values
            right = posterior.posterior[:, values == 1.0].sum(axis=1)
            inlier[members] = right
            if k == 2:
                means[:], stds[:] = simplex(2) * posterior.center, posterior.center_std.mean()
            else:
                means[c], stds[c] = posterior.center, posterior.center_std.mean()
        self.posterior_ = tuple(found)
        self.algorithm_ = "gibbs" if any(isinstance(p, GibbsResult) for p in found) else "amp"
        share = np.asarray(sizes) / np.sum(sizes)
        mixture = self._with(m, frame, means, found, share)
        self.centers_std_ = stds[:, None] * frame.raw_spread()
        converged = all(p.converged for p in found)
        iterations = [p.n_iter if isinstance(p, AmpResult) else p.n_reads for p in found]
        energies = [p.energy if isinstance(p, AmpResult) else fit.energy for p in found]
        return Finished(
            mixture=mixture,
            inlier_proba=np.clip(inlier, 0.0, 1.0),
            energy=float(sum(energies)) + data.count * frame.log_volume,
            n_iter=fit.n_iter + max(iterations),
            status=FitStatus.CONVERGED if converged else FitStatus.MAX_ITER,
        )

    def _posterior(
        self, rows: Rows | Mapped, beliefs: Beliefs, m: Mixture, guess: Array, rng: np.random.Generator
    ) -> Posterior:
        """Posterior of one folded problem: message passing, or sampling, or first one and then the other."""
        right, wrong, garbage = m.states
        two = m.n_classes == 2
        flips = two and (beliefs.label_noise is None or beliefs.label_noise > 0.0)
        outliers = garbage if two else garbage + wrong
        unknown = [("contamination", beliefs.contamination), ("noise_variance", beliefs.noise_variance)]
        unknown += [("center_variance", beliefs.center_variance)]
        unknown += [("label_noise", beliefs.label_noise)] if flips else []
        settings: dict[str, Any] = {
            "contamination": float(min(outliers, 0.999)),
            "label_noise": float(np.clip(wrong / (right + wrong), 1e-3, 0.5)) if flips else None,
            "learn": tuple(name for name, value in unknown if value is None),
        }
        ratio = m.center_variance / m.covariance.mean_variance
        weights = np.ones(rows.shape[0]) if rows.sample_weight is None else rows.sample_weight
        count = float(weights.sum())
        scale = float(m.covariance.values) if m.covariance.structure == "spherical" else 1.0
        settings["noise_variance"] = scale
        settings["center_variance"] = ratio * scale
        if beliefs.noise_variance is None:
            settings["noise_variance"] = max(
                float(weights @ rows.square_norms()) / count / rows.shape[1], 1e-12
            )
        if self.algorithm == "gibbs":
            return self._sample(rows, settings, rng)
        fresh = dict(settings)
        if "center_variance" in settings["learn"]:
            fresh["center_variance"] = _hebb_variance(rows, settings["noise_variance"], count)
        if "contamination" in settings["learn"]:
            fresh["contamination"] = 0.5
        runs = [amp(rows, max_iter=self.max_iter, tol=self.tol, **fresh)]
        if guess.any():
            # EM's optimum may lie in a valley that message passing does not enter from Hebb's rule.
            settings["noise_variance"] = scale
            settings["center_variance"] = max(settings["center_variance"], float(guess @ guess) / guess.size)
            runs.append(amp(rows, init=guess, max_iter=self.max_iter, tol=self.tol, **settings))
        best = min(runs, key=lambda run: (not run.converged, run.energy))
        if best.converged or self.algorithm == "amp":
            return best
        whole = bool((weights % 1.0 == 0.0).all())
        instead = "the posterior is sampled instead" if whole else "sampling needs whole sample weights"
        warnings.warn(
            f"message passing ended with '{best.status}'; {instead}.", ConvergenceWarning, stacklevel=5
        )
        return self._sample(rows, settings, rng) if whole else best

    @staticmethod
    def _sample(rows: Rows | Mapped, settings: dict[str, Any], rng: np.random.Generator) -> GibbsResult:
        tempered = 4 if rows.shape[0] * rows.shape[1] <= 1_000_000 else 1
        return gibbs(rows, n_draws=_N_DRAWS, burn_in=_N_DRAWS, n_temperatures=tempered, rng=rng, **settings)

    def _with(self, m: Mixture, frame: _Frame, means: Array, found: list[Posterior], share: Array) -> Mixture:
        """The EM solution with the posterior's centres, fractions and noise."""
        k = m.n_classes
        working = frame.outward(means)
        noise = float(share @ [p.noise_variance for p in found]) / frame.noise
        states = m.states.copy()
        outliers = float(share @ [p.contamination for p in found])
        if k == 2:
            flips = float(found[0].label_noise)
            states = np.array([(1.0 - outliers) * (1.0 - flips), (1.0 - outliers) * flips, outliers])
        else:
            kept = 1.0 - states[1] / max(states[1] + states[2], 1e-300)
            states = np.array([1.0 - outliers, outliers * (1.0 - kept), outliers * kept])
        covariance = _scaled(m.covariance, noise)
        midpoint = m.midpoint + working.mean(axis=0)
        variance = float(share @ [p.center_variance for p in found])
        return replace(
            m,
            midpoint=midpoint,
            centers=simplex(k).T @ (working - working.mean(axis=0)) * ((k - 1.0) / k),
            garbage_center=midpoint,
            covariance=covariance,
            garbage_covariance=covariance,
            states=states,
            center_variance=variance * m.covariance.mean_variance / frame.noise,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Coordinates around the midpoint in which the noise is the same in all directions."""

    data: MixtureData
    midpoint: Array
    covariance: Covariance
    factor: Array  # standard deviations (diag), lower Cholesky factor (tied)
    noise: float  # the noise variance of EM in these coordinates
    log_volume: float

    @classmethod
    def of(cls, data: MixtureData, m: Mixture) -> _Frame:
        values = m.covariance.values
        if data.structure == "spherical":
            return cls(data, m.midpoint, m.covariance, np.ones(1), float(values), 0.0)
        if data.structure == "diag":
            spread = np.sqrt(values)
            return cls(data, m.midpoint, m.covariance, spread, 1.0, float(np.log(spread).sum()))
        factor = linalg.cholesky(values, lower=True)
        return cls(data, m.midpoint, m.covariance, factor, 1.0, float(np.log(np.diag(factor)).sum()))

    @property
    def n_features(self) -> int:
        # spherical: the reaction terms count all dimensions, also those that no example touches
        return self.data.n_total if self.data.structure == "spherical" else self.midpoint.size

    def rows(self, members: Any, signs: Array | None) -> Rows | Mapped:
        """The folded problem of some examples; a slice takes all of them."""
        data = self.data
        weights = data.weights[members]
        counts = None if (weights == 1.0).all() else weights
        if data.structure == "spherical":
            center = data.origin + data.outward(self.midpoint[None])[0]
            X = data.X if isinstance(members, slice) else data.X[members]
            return Rows.of(X, signs=signs, sample_weight=counts, center=center, n_threads=data.raw.n_threads)

        def norms() -> Array:
            return data.square_distances(self.covariance, self.midpoint)[members]

        rows = data.folded(members, signs, counts, self.midpoint)
        return Mapped(rows, self.inward, self._across, norms)

    def inward(self, away: Array) -> Array:
        """Differences in working coordinates to those of equal noise."""
        if self.data.structure == "spherical":
            return self.data.outward(away)
        if self.data.structure == "diag":
            return away / self.factor
        return linalg.solve_triangular(self.factor, away.T, lower=True).T

    def _across(self, directions: Array) -> Array:
        """Directions of equal noise to those whose fields in working coordinates are the same."""
        if self.data.structure == "diag":
            return directions / self.factor
        return linalg.solve_triangular(self.factor, directions.T, lower=True, trans="T").T

    def outward(self, away: Array) -> Array:
        """Differences in coordinates of equal noise to working ones."""
        if self.data.structure == "spherical":
            return self.data.working(away)
        return away * self.factor if self.data.structure == "diag" else away @ self.factor.T

    def raw_spread(self) -> Array:
        """Standard deviation in the units of the data that one unit here has along every feature."""
        data = self.data
        if data.structure == "spherical":
            return np.asarray(data.scale)
        if data.structure == "diag":
            return np.asarray(self.factor * data.scale)
        across = self.factor.T if data.basis is None else self.factor.T @ data.basis
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", across, across)) * data.scale)


def _scaled(covariance: Covariance, factor: float) -> Covariance:
    return replace(
        covariance, values=covariance.values * factor, outside=covariance.outside * factor, _factor=None
    )


def _hebb_variance(rows: Rows | Mapped, noise: float, count: float) -> float:
    """Square of the centre per coordinate that the rows' mean shows if half of them are informative."""
    mean = rows.weighted_sums(np.ones((rows.shape[0], 1)))[0] / count
    n = rows.shape[1]
    return max((float(mean @ mean) / n - noise / count) / 0.25, 0.01 * noise / n)
