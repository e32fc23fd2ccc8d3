"""Classifiers read the data where they are: nothing of their size is allocated."""

import tracemalloc

import numpy as np
import pytest

from outlearn.estimators import HardSelectionClassifier, HebbClassifier, SoftSelectionClassifier

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
    model.fit(X[:500, :5], y[:500])  # compile outside the measurement
    for use in (lambda: model.fit(X, y), lambda: model.predict(X), lambda: model.predict_proba(X)):
        tracemalloc.start()
        use()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * X.nbytes, f"{peak / X.nbytes:.2f} of the data"
