"""A classifier that diagnoses its data first and then uses the learner that the theory recommends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from outlearn import estimators
from outlearn.exceptions import DataError
from outlearn.practice.comparison import recommended_classifier
from outlearn.practice.diagnosis import diagnose

__all__ = ["AutoSelectionClassifier"]


class AutoSelectionClassifier(ClassifierMixin, BaseEstimator):
    """Diagnose, then learn: soft selection where it is as good as the bound, the Bayes learner elsewhere.

    Soft and hard selection look for a mode of the posterior and lose it at a transition; near it and beyond
    it the posterior mean is used, which has none or a later one. With more than two classes, or too few
    examples for a diagnosis, the Bayes learner is used at once.

    Parameters
    ----------
    random_state : int, optional

    Attributes
    ----------
    diagnosis_ : Diagnosis or None
    estimator_ : the fitted classifier
    inlier_proba_ : array (n_samples,)
    coef_, intercept_ : arrays
    classes_ : array

    Examples
    --------
    >>> from outlearn.model import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.9, gamma=10.0), n_features=200, n_samples=400, rng=0)
    >>> model = AutoSelectionClassifier(random_state=0).fit(data.X, data.y)
    >>> type(model.estimator_).__name__
    'BayesSelectionClassifier'
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> AutoSelectionClassifier:
        """Diagnose the data, choose, and learn."""
        self.diagnosis_ = None
        if len(np.unique(np.asarray(y))) == 2:
            try:
                self.diagnosis_ = diagnose(X, y)
            except DataError:  # the classifier says what is wrong with the data, or takes them
                self.diagnosis_ = None
        if self.diagnosis_ is None:
            self.estimator_ = estimators.BayesSelectionClassifier(random_state=self.random_state)
        else:
            self.estimator_ = recommended_classifier(self.diagnosis_, random_state=self.random_state)
        self.estimator_.fit(X, y)
        self.classes_ = self.estimator_.classes_
        self.inlier_proba_ = self.estimator_.inlier_proba_
        self.coef_, self.intercept_ = self.estimator_.coef_, self.estimator_.intercept_
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable true class of every row."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of every label on the contaminated stream."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log odds of the second class, if informative."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)
