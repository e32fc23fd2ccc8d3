"""Discriminant analysis in closed form: scikit-learn's, for tall and wide data, and for multiplicities."""

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from outlearn.exceptions import DataError
from outlearn.inference.discriminant import discriminant


class _Within(LedoitWolf):
    """The covariance within classes, whatever it is asked for."""

    within: np.ndarray

    def fit(self, X, y=None):
        self.covariance_ = LedoitWolf(assume_centered=True).fit(self.within).covariance_
        return self


@pytest.mark.parametrize(("p", "n", "k"), [(300, 10, 2), (40, 100, 2), (60, 30, 3), (20, 60, 3)])
def test_agrees_with_scikit_learn(p, n, k):
    rng = np.random.default_rng(p)
    y = np.arange(p) % k
    X = (
        rng.standard_normal((p, n)) * rng.uniform(0.5, 2.0, n) * rng.gamma(2.0, 1.0, (p, 1))
        + 0.3 * y[:, None]
    )
    X += 0.3 * y[:, None]
    _Within.within = X - np.array([X[y == c].mean(axis=0) for c in range(k)])[y]
    rival = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=_Within()).fit(X, y)
    rule = discriminant(X, y, k, np.ones(p))
    fresh = rng.standard_normal((50, n))
    ours = fresh @ rule.coef.T + rule.intercept
    theirs = rival.decision_function(fresh).reshape(ours.shape)
    if k > 2:  # scores of several classes count up to a common term
        ours, theirs = (s - s.mean(axis=1, keepdims=True) for s in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, atol=1e-10 * np.abs(theirs).max())
    weights = rng.integers(1, 4, p)
    rows = np.repeat(np.arange(p), weights)
    weighted = discriminant(X, y, k, weights.astype(float))
    repeated = discriminant(X[rows], y[rows], k, np.ones(len(rows)))
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-8)


def test_large_data_are_read_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((70, 5)), np.arange(70) % 2
    whole = discriminant(X, y, 2, np.ones(70))
    monkeypatch.setattr("outlearn.inference.discriminant._BLOCK", 40)
    np.testing.assert_allclose(discriminant(X, y, 2, np.ones(70)).coef, whole.coef, rtol=1e-10)


def test_says_what_cannot_be_done():
    X = np.ones((4, 3))
    with pytest.raises(DataError, match="all the same"):
        discriminant(X, np.array([0, 0, 1, 1]), 2, np.ones(4))
    with pytest.raises(DataError, match="no examples"):
        discriminant(X, np.array([0, 0, 1, 1]), 2, np.array([1.0, 1.0, 0.0, 0.0]))
