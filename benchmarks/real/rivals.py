"""What people use today. Inputs and scores as :mod:`benchmarks.real.methods` says.

The doubt of the plain classifiers is minus the margin of the label out of five-fold cross-validation, which
is the fairest such score they have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestCentroid
from sklearn.svm import LinearSVC

from benchmarks.real.fitted import Fitted, Method

GRID = {"C": np.logspace(-4, 1, 6)}


def _folds(y: np.ndarray, seed: int) -> StratifiedKFold:
    return StratifiedKFold(int(min(5, np.bincount(y).min())), shuffle=True, random_state=seed)


def _span(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the rows' span if they are fewer than the columns, else the identity.

    A rule with an L2 penalty lies in that span: in these coordinates it is the same rule, found faster.
    """
    n_rows, n_columns = X.shape
    return np.linalg.svd(X, full_matrices=False)[2].T if n_rows < n_columns else np.eye(n_columns)


def _plain(model: Any, X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    score = cross_val_predict(model, X, y, cv=_folds(y, seed), method="decision_function")
    fitted = clone(model).fit(X, y)
    return Fitted(predict=fitted.predict, doubt=-(2 * y - 1) * score)


def _tuned_logistic(X: np.ndarray, y: np.ndarray, seed: int) -> LogisticRegression:
    search = GridSearchCV(
        LogisticRegression(max_iter=500), GRID, cv=_folds(y, seed), scoring="neg_log_loss", refit=False
    )
    return LogisticRegression(max_iter=500, C=search.fit(X, y).best_params_["C"])


def logistic(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    basis = _span(X)
    Z = X @ basis
    return _in_span(_plain(_tuned_logistic(Z, y, seed), Z, y, seed), basis)


def _in_span(fitted: Fitted, basis: np.ndarray) -> Fitted:
    return Fitted(predict=lambda T: fitted.predict(T @ basis), doubt=fitted.doubt)


def lda_shrinkage(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    return _plain(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), X, y, seed)


def nearest_centroid(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    return _plain(NearestCentroid(), X, y, seed)


def linear_svm(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    basis = _span(X)
    Z = X @ basis
    search = GridSearchCV(LinearSVC(), GRID, cv=_folds(y, seed), refit=False).fit(Z, y)
    return _in_span(_plain(LinearSVC(C=search.best_params_["C"]), Z, y, seed), basis)


def folded_mixture(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    """Two spherical Gaussians on y (x - midpoint), started from Hebb's centre and from nothing."""
    sign = 2 * y - 1
    midpoint = (X[y == 0].mean(axis=0) + X[y == 1].mean(axis=0)) / 2
    folded = sign[:, None] * (X - midpoint)
    hebb = folded.mean(axis=0)
    mixture = GaussianMixture(
        2,
        covariance_type="spherical",
        means_init=[hebb, np.zeros_like(hebb)],
        max_iter=500,
        random_state=seed,
    ).fit(folded)
    informative = int(np.argmax(mixture.means_ @ hebb))
    center = mixture.means_[informative]
    return Fitted(
        predict=lambda T: ((T - midpoint) @ center > 0).astype(int),
        doubt=1.0 - mixture.predict_proba(folded)[:, informative],
    )


def cleanlab_logistic(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from cleanlab.classification import CleanLearning
    from cleanlab.rank import get_label_quality_scores

    basis = _span(X)
    Z = X @ basis
    model = _tuned_logistic(Z, y, seed)
    folds = _folds(y, seed)
    proba = cross_val_predict(model, Z, y, cv=folds, method="predict_proba")
    learner = CleanLearning(clone(model), seed=seed, find_label_issues_kwargs={"n_jobs": 1}, verbose=False)
    learner.fit(Z, y, pred_probs=proba)
    return Fitted(predict=lambda T: learner.predict(T @ basis), doubt=-get_label_quality_scores(y, proba))


def isolation_logistic(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    """Drop what an isolation forest of each class calls outlying, then tuned logistic regression."""
    score, kept = np.empty(len(y)), np.empty(len(y), dtype=bool)
    for k in (0, 1):
        members = np.flatnonzero(y == k)
        forest = IsolationForest(random_state=seed).fit(X[members])
        score[members] = forest.score_samples(X[members])
        kept[members] = forest.predict(X[members]) > 0
        if kept[members].sum() < 2:
            kept[members] = True
    basis = _span(X[kept])
    Z = X[kept] @ basis
    model = _tuned_logistic(Z, y[kept], seed).fit(Z, y[kept])
    return Fitted(predict=lambda T: model.predict(T @ basis), doubt=-score)


RIVALS: dict[str, Method] = {
    "logistic": logistic,
    "LDA": lda_shrinkage,
    "centroid": nearest_centroid,
    "SVM": linear_svm,
    "mixture": folded_mixture,
    "cleanlab": cleanlab_logistic,
    "isolation": isolation_logistic,
}
