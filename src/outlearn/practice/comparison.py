"""Our classifiers beside the plain ones, by cross-validation on the labels that are there.

The labels of the held-out examples are contaminated as well: garbage costs every method half of its share.
Examples that the diagnosis keeps are nearly clean; the accuracy on them ranks methods without that floor,
though it flatters those that agree with the diagnosis. Both are given.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from outlearn import estimators
from outlearn.practice.diagnosis import Diagnosis

__all__ = ["Compared", "compare", "recommended_classifier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Cross-validated accuracy of one classifier.

    ``accuracy`` is on all held-out labels, ``accuracy_kept`` on those of examples that the diagnosis keeps
    (nan if it keeps none); ``error`` is a standard error of the former.
    """

    name: str
    accuracy: float
    error: float
    accuracy_kept: float
    ours: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def recommended_classifier(diagnosis: Diagnosis, **parameters: Any) -> Any:
    """Build the classifier that a diagnosis recommends, unfitted.

    Where soft or hard selection would be on the wrong side of its transition, or where the posterior mean is
    clearly better, that is the Bayes classifier.
    """
    kind = {
        "bayes": "BayesSelectionClassifier",
        "soft": "SoftSelectionClassifier",
        "hard": "HardSelectionClassifier",
        "hebb": "HebbClassifier",
    }[diagnosis.recommended]
    given = {"covariance": diagnosis.structure} | parameters
    return getattr(estimators, kind)(**given)


def compare(
    diagnosis: Diagnosis, X: Any, y: ArrayLike, *, n_folds: int = 5, seed: int = 0
) -> tuple[Compared, ...]:
    """Cross-validate the recommended classifier and the plain ones on the two classes diagnosed."""
    labels = np.asarray(y)
    if sparse.issparse(X):
        X = X.toarray()  # most of the plain ones take no other
    X = X.iloc[diagnosis.verdicts.index] if hasattr(X, "iloc") else X[diagnosis.verdicts.index]
    labels = labels[diagnosis.verdicts.index]
    kept = diagnosis.verdicts.verdict == "keep"
    n_folds = min(n_folds, int(np.unique(labels, return_counts=True)[1].min()))
    scale = StandardScaler
    models = {
        f"outlearn: {diagnosis.recommended}": recommended_classifier(diagnosis),
        "logistic regression": make_pipeline(scale(), LogisticRegression(max_iter=2000)),
        "LDA, shrinkage": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "nearest centroid": make_pipeline(scale(), NearestCentroid()),
        "linear SVM": make_pipeline(scale(), LinearSVC(C=0.01)),
    }
    folds = list(
        StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(labels)), labels)
    )
    out = []
    for name, model in models.items():
        right = np.zeros(len(labels), dtype=bool)
        for train, test in folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a comparison is not the place to complain of convergence
                # what varies in all of the data may be constant in a part
                varying = make_pipeline(VarianceThreshold(), clone(model))
                fitted = varying.fit(_rows(X, train), labels[train])
                right[test] = fitted.predict(_rows(X, test)) == labels[test]
        accuracy = float(right.mean())
        out.append(
            Compared(
                name=name,
                accuracy=accuracy,
                error=float(np.sqrt(accuracy * (1.0 - accuracy) / len(labels))),
                accuracy_kept=float(right[kept].mean()) if kept.any() else float("nan"),
                ours=name.startswith("outlearn"),
            )
        )
    return tuple(sorted(out, key=lambda c: -c.accuracy))


def _rows(X: Any, index: Any) -> Any:
    return X.iloc[index] if hasattr(X, "iloc") else X[index]
