"""Folding: the structure of the noise, whitening, bad data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from outlearn.exceptions import DataError, ParameterError
from outlearn.model import Ensemble, sample
from outlearn.practice.folding import fold


@pytest.fixture(scope="module")
def data():
    return sample(Ensemble.from_contamination(0.5, gamma=8.0), 30, 600, 0)


def test_the_simplest_structure_that_predicts_is_chosen(data):
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(0.0, 1.0, 30))
    mixing = rng.standard_normal((30, 30))
    assert fold(data.X, data.y).structure == "spherical"
    assert fold(data.X * scales, data.y).structure == "diag"
    assert fold(data.X @ mixing, data.y).structure == "tied"


def test_whitening_undoes_scales_and_correlations(data):
    rng = np.random.default_rng(1)
    mixing = rng.standard_normal((30, 30))
    plain, mixed = fold(data.X, data.y), fold(data.X @ mixing, data.y)
    scaled = fold(data.X * np.exp(rng.normal(0.0, 1.0, 30)), data.y)
    for other in (scaled, mixed):
        assert other.posterior.contamination == pytest.approx(plain.posterior.contamination, abs=0.04)
        correlation = np.corrcoef(other.posterior.inlier_proba, plain.posterior.inlier_proba)[0, 1]
        assert correlation > 0.95
    assert mixed.whitening_cost < plain.whitening_cost == 1.0


def test_a_shift_changes_nothing(data):
    moved = fold(data.X + 5.0, data.y, structure="spherical")
    plain = fold(data.X, data.y, structure="spherical")
    np.testing.assert_allclose(moved.posterior.inlier_proba, plain.posterior.inlier_proba, atol=1e-6)


def test_sparse_data_are_like_dense_ones(data):
    X = np.where(np.abs(data.X) > 0.3, data.X, 0.0)
    for structure in ("spherical", "diag"):
        dense = fold(X, data.y, structure=structure)
        thin = fold(sparse.csr_matrix(X), data.y, structure=structure)
        np.testing.assert_allclose(thin.posterior.inlier_proba, dense.posterior.inlier_proba, atol=1e-4)
        assert thin.noise_variance == pytest.approx(dense.noise_variance, rel=1e-4)
    with pytest.raises(ParameterError, match="sparse"):
        fold(sparse.csr_matrix(X), data.y, structure="tied")


def test_three_classes_are_cut_down_to_the_hardest_pair(data):
    X = np.vstack([data.X, data.X[:50] + 9.0])
    y = np.append(np.where(data.y > 0, "b", "a"), np.full(50, "far"))
    found = fold(X, y)
    assert list(found.classes) == ["a", "b"]
    assert found.selected.max() == 599
    assert "classes" in found.warnings[0]
    assert list(fold(X, y, classes=("far", "a")).classes) == ["a", "far"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X, np.ones(len(y))), "one class"),
        (lambda X, y: (X, y[:-1]), "600 rows"),
        (lambda X, y: (np.where(X > 1.0, np.nan, X), y), "NaN"),
        (lambda X, y: (np.zeros_like(X), y), "constant"),
        (lambda X, y: (X, np.arange(600)), "different labels"),
        (lambda X, y: (X, np.where(np.arange(600) < 2, 1, 0)), "2 examples"),
        (lambda X, y: (X[:, 0], y), "2D|2-dim"),
        (lambda X, y: (np.full(X.shape, "a"), y), "convert|numeric|string"),
        (lambda X, y: (X, np.append(np.asarray(y[:-1], dtype=object), None)), "missing"),
    ],
)
def test_data_that_cannot_be_used(data, change, words):
    with pytest.raises(DataError, match=words):
        fold(*change(data.X, data.y))


def test_bad_parameters(data):
    with pytest.raises(ParameterError, match="structure"):
        fold(data.X, data.y, structure="round")
    with pytest.raises(ParameterError, match="classes"):
        fold(data.X, data.y, classes=(1, 7))


def test_constant_features_are_left_out_with_a_word(data):
    X = np.hstack([data.X, np.full((600, 2), 3.0)])
    found = fold(X, data.y)
    assert found.rows.shape == (600, 30)
    assert "2 constant features" in found.warnings[0]


def test_features_far_from_zero_count_like_others(data):
    shifted = data.X + np.where(np.arange(30) == 3, 1e9, 0.0)
    plain, far = fold(data.X, data.y), fold(shifted, data.y)
    assert far.columns.size == 30
    assert far.posterior.contamination == pytest.approx(plain.posterior.contamination, abs=1e-4)


def test_columns_that_vary_are_named(data):
    X = np.insert(data.X, 2, 7.0, axis=1)
    found = fold(X, data.y)
    assert found.columns.tolist() == [k for k in range(31) if k != 2]
    assert any("1 constant" in note for note in found.warnings)
