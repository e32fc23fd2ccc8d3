"""What all selection classifiers share: checks, the fit's frame, prediction.

A classifier is made of two parts. This base class turns labelled data into working coordinates (midpoint,
noise structure, labels as states), chooses what is to be chosen by evidence and climbs with EM. The
algorithm gives the last word: :meth:`SelectionClassifier._finish` takes the data in those coordinates and
the EM solution, and returns the centres and the inlier probabilities that it finds there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from outlearn.estimators.refusals import refuse_labels, refuse_too_few, refuse_unusable
from outlearn.estimators.threads import threads, within_jobs
from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.covariance import STRUCTURES
from outlearn.inference.evidence import (
    Candidate,
    Scored,
    candidates_for,
    choose,
    climb_all,
    likelier,
    of_needed_forms,
    select,
    starts_for,
)
from outlearn.inference.mixture import Beliefs, Mixture, simplex
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_fit import MixtureFit
from outlearn.inference.mixture_step import mixture_at
from outlearn.inference.posterior import FittedMixture, project
from outlearn.inference.results import FitStatus
from outlearn.inference.rows import refuse_weights
from outlearn.inference.stream import RunningMoments

__all__ = ["Finished", "SelectionClassifier"]

Array = NDArray[np.float64]

_GARBAGE = ("auto", "shared", "learned")
_WIDE = 0.25  # features per example above which the outliers' own middle would be mostly noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finished:
    """What an algorithm hands back: the mixture with its centres, and the training set's inliers."""

    mixture: Mixture
    inlier_proba: Array
    energy: float
    n_iter: int
    status: FitStatus


class SelectionClassifier(ClassifierMixin, BaseEstimator):
    """Common base of the classifiers; not for direct use."""

    _hard: ClassVar[bool] = False

    # -- the algorithm's part ------------------------------------------------------------------------

    def _finish(
        self, data: MixtureData, beliefs: Beliefs, fit: MixtureFit, rng: np.random.Generator
    ) -> Finished:
        """Turn the EM solution into the classifier's own: here, keep it.

        ``data.rows`` are the examples in coordinates centred near the midpoint; ``fit.mixture`` knows
        midpoint, centres, covariance and fractions there. An algorithm replaces the centres and the
        probabilities.
        """
        responsibilities = data.inlier_proba(fit.mixture, leave_out=True)
        return Finished(
            mixture=fit.mixture,
            inlier_proba=responsibilities,
            energy=fit.energy,
            n_iter=fit.n_iter,
            status=fit.status,
        )

    # -- fitting -------------------------------------------------------------------------------------

    @within_jobs
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SelectionClassifier:
        """Learn the class centres from contaminated labelled data.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes, many of them possibly meaningless.
        sample_weight : array of shape (n_samples,), optional
            Multiplicity of each example.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, labels, weights, kept, n_samples = self._training_set(X, y, sample_weight)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        before = getattr(self, "model_", None) if self.warm_start else None
        if before is not None and before.means.shape != (len(self.classes_), X.shape[1]):
            before = None
        candidates = of_needed_forms(X, labels, self._candidates(X), sample_weight=weights)
        self.selection_ = None
        if len(candidates) > 1:
            candidates = likelier(X, labels, len(self.classes_), candidates, sample_weight=weights)
        if len(candidates) > 1:
            scored = select(
                X, labels, len(self.classes_), candidates, sample_weight=weights, n_init=self.n_init, rng=rng
            )
            if scored:
                candidate = choose(scored).candidate
                self.selection_ = tuple(scored)
            else:
                candidate = candidates[0]
        else:
            scored, candidate = [], candidates[0]
        data = MixtureData(
            X,
            labels,
            len(self.classes_),
            candidate.structure,
            sample_weight=weights,
            n_threads=threads(self.n_jobs),
        )
        fits = self._climb(data, candidate, scored, before, rng)
        finished = self._finish(data, candidate.beliefs, fits[0], rng)
        self._store(data, candidate, finished, fits)
        self.inlier_proba_ = np.zeros(n_samples)
        self.inlier_proba_[kept] = finished.inlier_proba
        self._warn(finished.status)
        return self

    def _climb(
        self,
        data: MixtureData,
        candidate: Candidate,
        scored: list[Scored],
        before: FittedMixture | None,
        rng: np.random.Generator,
    ) -> list[MixtureFit]:
        beliefs = candidate.beliefs
        winner = next((s for s in scored if s.candidate is candidate), None)
        starts = starts_for(data, beliefs, self.n_init, rng)
        if winner is not None:
            # the choice was made by evidence, and for the optimum that was found: go on from there
            found = winner.posterior
            start = transplant(data, beliefs, found)
            starts = [(winner.fit.start, start)]
        if before is not None:
            starts.insert(0, ("warm", transplant(data, beliefs, before)))
        return climb_all(
            data,
            beliefs,
            starts,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _store(
        self, data: MixtureData, candidate: Candidate, finished: Finished, fits: list[MixtureFit]
    ) -> None:
        model = FittedMixture.of(data, finished.mixture)
        self.model_ = model
        self.covariance_structure_ = candidate.structure
        self.status_ = finished.status
        self.energy_ = float(finished.energy + data.count * model.log_volume)
        self.n_iter_ = int(finished.n_iter)
        self.starts_ = tuple(
            {"name": f.start, "energy": f.energy, "n_iter": f.n_iter, "status": f.status.name} for f in fits
        )
        self._describe()

    def _describe(self) -> None:
        """Set the fitted attributes that follow from the model."""
        model, m = self.model_, self.model_.mixture
        self.centers_ = model.means
        self.garbage_center_ = model.garbage_center
        self.contamination_ = float(m.states[2])
        self.label_noise_ = float(m.states[1])
        self.class_prior_ = m.class_prior
        self.noise_variance_ = model.noise_variance()
        self.garbage_variance_ = model.garbage_variance()
        self.center_variance_ = float(m.center_variance * self.noise_variance_ / m.covariance.mean_variance)
        D, b = model.directions()
        D, b = D[:-1], b[:-1] + np.log(m.class_prior)
        if len(self.classes_) == 2:
            self.coef_, self.intercept_ = D[1:] - D[:1], b[1:] - b[:1]
        else:
            self.coef_, self.intercept_ = D, b

    def _warn(self, status: FitStatus) -> None:
        if status is FitStatus.MAX_ITER:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.max_iter} iterations: raise max_iter, or "
                f"tol (now {self.tol:g}), or standardise the features.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif status is FitStatus.ALL_REJECTED:
            warnings.warn(
                f"degenerate fit: {type(self).__name__} rejected every example as an outlier, so the class "
                "centres mean nothing. Give contamination as a number, use more examples, or check labels.",
                ConvergenceWarning,
                stacklevel=4,
            )

    # -- checks --------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        def fraction(name: str, value: Any) -> None:
            if isinstance(value, str) and value == "auto":
                return
            if isinstance(value, bool | str) or not isinstance(value, Real) or not 0.0 <= float(value) < 1.0:
                raise ParameterError(name, value, "'auto' or a number with 0 <= value < 1")

        def positive(name: str, value: Any) -> None:
            if isinstance(value, str) and value == "auto":
                return
            if (
                isinstance(value, bool | str)
                or not isinstance(value, Real)
                or not 0.0 < float(value) < np.inf
            ):
                raise ParameterError(name, value, "'auto' or a finite number > 0")

        p = self.get_params(deep=False)
        for name in ("contamination", "label_noise"):
            if name in p:
                fraction(name, p[name])
        if all(isinstance(p.get(name), Real) for name in ("contamination", "label_noise")) and (
            p["contamination"] + p["label_noise"] >= 1.0
        ):
            raise ParameterError("label_noise", p["label_noise"], "contamination + label_noise < 1")
        for name in ("noise_variance", "center_variance"):
            positive(name, p[name])
        if p["covariance"] not in (*STRUCTURES, "auto"):
            raise ParameterError("covariance", p["covariance"], "'spherical', 'diag', 'tied' or 'auto'")
        if p.get("garbage_covariance", "auto") not in _GARBAGE:
            raise ParameterError(
                "garbage_covariance", p["garbage_covariance"], "'shared', 'learned' or 'auto'"
            )
        for name in ("n_init", "max_iter"):
            if isinstance(p[name], bool) or not isinstance(p[name], Integral) or p[name] < 1:
                raise ParameterError(name, p[name], "a whole number >= 1")
        if (
            isinstance(p["tol"], bool | str)
            or not isinstance(p["tol"], Real)
            or not 0.0 < float(p["tol"]) < 1.0
        ):
            raise ParameterError("tol", p["tol"], "0 < tol < 1")

    def _training_set(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[np.intp], Array, NDArray[np.intp], int]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None)
        refuse_labels(y)
        n_samples = X.shape[0]
        kept = np.arange(n_samples)
        weights = np.ones(n_samples)
        if sample_weight is not None:
            weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
            refuse_weights(weights)
            kept = np.flatnonzero(weights > 0.0)
            if len(kept) < n_samples:
                X, y, weights = X[kept], y[kept], weights[kept]
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"y holds one class only ({self.classes_.tolist()[0]!r}); learning needs at least two classes"
            )
        refuse_too_few(len(kept), len(self.classes_))
        if self.covariance == "tied" and sparse.issparse(X):
            raise DataError(
                "covariance='tied' does not take sparse data; use 'spherical' or 'diag', or densify X"
            )
        refuse_unusable(X, getattr(self, "feature_names_in_", None))
        return X, labels.astype(np.intp), weights, kept, n_samples

    def _candidates(self, X: Any) -> list[Candidate]:
        p = self.get_params(deep=False)
        structures = STRUCTURES if self.covariance == "auto" else (self.covariance,)
        if self.covariance == "auto" and (sparse.issparse(X) or min(X.shape) > 600):
            structures = ("spherical", "diag")
        garbage = p.get("garbage_covariance", "shared")
        if garbage == "auto" and X.shape[1] > _WIDE * X.shape[0]:
            garbage = "shared"
        return candidates_for(
            structures,
            contamination=_given(p.get("contamination", 0.0)),
            label_noise=_given(p.get("label_noise", 0.0)),
            noise_variance=_given(p["noise_variance"]),
            center_variance=_given(p["center_variance"]),
            garbage=garbage,
        )

    # -- streams -------------------------------------------------------------------------------------

    @within_jobs
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> SelectionClassifier:
        """Learn from one more batch of a stream: stochastic EM on running statistics.

        The first batch sets the coordinates and needs ``classes``; it should hold some hundred examples of
        every class. With ``covariance="auto"`` a stream is given one variance per feature ("diag"), with
        ``label_noise="auto"`` no wrong labels: evidence needs the data at hand.

        Parameters
        ----------
        X, y : batch of examples
        classes : array, needed at the first call
            All the classes that will ever come.
        sample_weight : array, optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "running_")
        self._check_parameters()
        if first and classes is None and not hasattr(self, "classes_"):
            raise DataError("the first call of partial_fit needs classes=, all labels that will ever come")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=not hasattr(self, "n_features_in_"),
        )
        refuse_labels(y)
        weights = np.ones(X.shape[0])
        if sample_weight is not None:
            weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
            refuse_weights(weights)
        if classes is not None:
            classes = np.unique(classes)
            if len(classes) < 2:
                raise DataError("classes holds one class only; at least two classes are needed")
            if hasattr(self, "classes_") and not np.array_equal(classes, self.classes_):
                raise DataError(
                    f"classes {classes.tolist()} are not those of before: {self.classes_.tolist()}"
                )
            self.classes_ = classes
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise DataError(f"y holds labels that are not among classes: {unknown[:5].tolist()}")
        labels = np.searchsorted(self.classes_, y).astype(np.intp)
        if first:
            refuse_too_few(len(y), len(self.classes_))
            self._open_stream(X)
        candidate, running = self._stream, self.running_
        data = MixtureData(
            X,
            labels,
            len(self.classes_),
            candidate.structure,
            sample_weight=weights,
            n_threads=threads(self.n_jobs),
            like=running,
        )
        fit = running.learn(data, candidate.beliefs, self._hard)
        self.inlier_proba_ = data.inlier_proba(fit.mixture)
        self._store(
            data,
            candidate,
            Finished(
                mixture=fit.mixture,
                inlier_proba=self.inlier_proba_,
                energy=fit.energy,
                n_iter=fit.n_iter,
                status=fit.status,
            ),
            [fit],
        )
        return self

    def _open_stream(self, X: Any) -> None:
        structure: Any = "diag" if self.covariance == "auto" else self.covariance
        p = self.get_params(deep=False)
        label_noise = p.get("label_noise", 0.0)
        garbage = "spread" if p.get("garbage_covariance") == "learned" and structure != "tied" else "shared"
        beliefs = Beliefs(
            contamination=_given(p.get("contamination", 0.0)),
            label_noise=0.0 if label_noise == "auto" else label_noise,
            noise_variance=_given(p["noise_variance"]),
            center_variance=_given(p["center_variance"]),
            garbage=garbage,
        )
        self._stream = Candidate(structure=structure, beliefs=beliefs)
        self.running_ = RunningMoments()

    # -- use -----------------------------------------------------------------------------------------

    def _input(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order=None, reset=False
        )

    @within_jobs
    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class (two classes), or log probability of every class, if informative."""
        X = self._input(X)
        scores = project(X, self.coef_) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable true class of every row."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @within_jobs
    def predict_proba(self, X: Any) -> Array:
        """p(y | x) on the contaminated stream: near 1/K for an input that looks like garbage.

        Calibrated if the model holds: of the fresh examples that give probability q to a label, a share q
        bears it. The label of an outlier counts as a fair coin.
        """
        X = self._input(X)
        return self.model_.label_proba(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of :meth:`predict_proba`; minus infinity where that is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @within_jobs
    def inlier_proba(self, X: Any, y: Any) -> Array:
        """Probability that each labelled example is informative and bears the right label."""
        X = self._input(X)
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise DataError(f"y has shape {y.shape}; X has {X.shape[0]} rows")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise DataError(f"y holds labels that were not seen in fit: {unknown[:5].tolist()}")
        return self.model_.inlier_proba(X, np.searchsorted(self.classes_, y).astype(np.intp))

    @within_jobs
    def score_samples(self, X: Any) -> Array:
        """Log density ln p(x) of every row under the fitted mixture, outliers included."""
        return self.model_.log_density(self._input(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.covariance != "tied"
        return tags


def _given(value: Any) -> float | None:
    return None if isinstance(value, str) else float(value)


def transplant(data: MixtureData, beliefs: Beliefs, found: FittedMixture) -> Mixture:
    """Start from a model of other coordinates (or other data): its centres and fractions, in these ones."""
    away = found.means - found.means.mean(axis=0)
    k = data.n_classes
    centers = simplex(k).T @ data.working(away) * ((k - 1.0) / k)
    start = mixture_at(data, beliefs, np.asarray(centers))
    states = start.states
    if beliefs.contamination is None or beliefs.label_noise is None:
        states = found.mixture.states.copy()
        if beliefs.contamination is not None:
            states[2] = beliefs.contamination
        if beliefs.label_noise is not None:
            states[1] = beliefs.label_noise
        states[0] = max(1.0 - states[1] - states[2], 1e-3)
        states = states / states.sum()
    return replace(start, states=states)
