"""Classifiers read the data where they are: nothing of their size is allocated."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from outlearn.estimators import (
    AutoSelectionClassifier,
    BayesSelectionClassifier,
    HardSelectionClassifier,
    HebbClassifier,
    SoftSelectionClassifier,
)

SPHERE = {"covariance": "spherical", "label_noise": 0}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model",
    [SoftSelectionClassifier(**SPHERE), HardSelectionClassifier(**SPHERE), HebbClassifier()],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("shape", [(16_000, 200), (3000, 1000)])
def test_no_copy_of_the_data(model, dtype, order, shape):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal(shape, dtype=dtype), order=order)
    y = rng.integers(0, 2, shape[0])
    X[::2] += (0.3 * (2 * y[::2, None] - 1)).astype(dtype)
    model.fit(X[:2000], y[:2000])  # compile outside the measurement
    for use in (lambda: model.fit(X, y), lambda: model.predict(X), lambda: model.predict_proba(X)):
        tracemalloc.start()
        use()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * X.nbytes, f"{peak / X.nbytes:.2f} of the data"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (
            SoftSelectionClassifier(covariance="tied", label_noise=0, garbage_covariance="shared"),
            (20_000, 80),
        ),
        (BayesSelectionClassifier(covariance="tied", algorithm="amp"), (20_000, 80)),
        (BayesSelectionClassifier(covariance="diag", algorithm="amp"), (20_000, 80)),
        (SoftSelectionClassifier(**SPHERE), (100, 30_000)),
        (BayesSelectionClassifier(covariance="spherical", algorithm="amp"), (100, 30_000)),
    ],
    ids=["soft tied", "bayes tied", "bayes diag", "soft wide", "bayes wide"],
)
def test_other_coordinates_are_seen_not_made(model, shape, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape, dtype=dtype)
    y = rng.integers(0, 2, shape[0])
    X[::2] += (0.3 * (2 * y[::2, None] - 1)).astype(dtype)
    model.fit(X[:50, :5], y[:50])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # what is kept of every example (its states, fields and probabilities) and a few blocks of rows
    assert peak < 0.4 * X.nbytes + 500 * shape[0] + 8e6, f"{peak / X.nbytes:.2f} of the data"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_copy_in_standard_units(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 100), dtype=dtype)
    X += np.arange(100, dtype=dtype)
    y = rng.integers(0, 2, 100_000)
    X[::2] += (0.3 * (2 * y[::2, None] - 1)).astype(dtype)
    model = AutoSelectionClassifier(members=("hebb", "lda"))
    model.fit(X[:50, :5], y[:50])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the copy, what is kept of every example, and the part on which members are compared
    assert peak < 1.3 * X.nbytes + 100 * 100_000 + 20e6, f"{peak / X.nbytes:.2f} of the data"


@pytest.mark.parametrize("model", [HebbClassifier(), SoftSelectionClassifier(**SPHERE)], ids=["hebb", "soft"])
def test_no_copy_of_sparse_data(model):
    rng = np.random.default_rng(0)
    X = sparse.random_array((8000, 3000), density=0.05, rng=rng, format="csr")
    y = rng.integers(0, 2, 8000)
    model.fit(X[:1000, :50], y[:1000])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * (X.data.nbytes + X.indices.nbytes), f"{peak / X.data.nbytes:.2f} of the data"
