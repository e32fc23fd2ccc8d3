"""Many problems in one call: each as if it were alone."""

import numpy as np
import pytest

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.hard import hard_em
from outlearn.inference.many import hard_em_many, soft_em_many
from outlearn.inference.results import FitStatus
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, sample

RUNS, P, N = 6, 300, 16
ETAS = np.array([-1.0, 0.0, 1.0, 2.0, 2.5, 3.0])


def problems(dtype=np.float64):
    data = [sample(Ensemble(eta=eta, gamma=8.0), N, P, rng=k, dtype=dtype) for k, eta in enumerate(ETAS)]
    return np.array([d.X for d in data]), np.array([d.y for d in data])


BELIEF = {"contamination": 1 / (1 + np.exp(-ETAS)), "noise_variance": 0.125}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("many", "one", "accelerate"),
    [(soft_em_many, soft_em, False), (soft_em_many, soft_em, True), (hard_em_many, hard_em, False)],
)
def test_each_as_if_it_were_alone(many, one, accelerate, dtype):
    X, y = problems(dtype)
    starts = np.random.default_rng(0).normal(size=(RUNS, N)) / np.sqrt(N)
    extra = {"accelerate": True} if accelerate else {}
    got = many(X, y, **BELIEF, init=starts, tol=1e-5, keep_proba=True, n_threads=2, **extra)
    for k in range(RUNS):
        want = one(
            X[k],
            y[k],
            contamination=BELIEF["contamination"][k],
            noise_variance=0.125,
            init=starts[k],
            tol=1e-5,
            accelerate=accelerate,
        )
        np.testing.assert_allclose(got.centers[k], want.center, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got.inlier_probas[k], want.inlier_proba, rtol=1e-8, atol=1e-12)
        assert got.energies[k] == pytest.approx(want.energy, rel=1e-11 if dtype is np.float64 else 1e-6)
        assert got.n_iter[k] == want.n_iter
        assert got.status[k] is want.status
        assert got.total_weights[k] == pytest.approx(want.inlier_proba.sum(), abs=1e-6)


def test_hebb_start_is_hebbs():
    X, y = problems()
    got = soft_em_many(X, y, **BELIEF)
    for k in range(RUNS):
        want = soft_em(
            X[k],
            y[k],
            contamination=BELIEF["contamination"][k],
            noise_variance=0.125,
            init="hebb",
            accelerate=False,
        )
        np.testing.assert_allclose(got.centers[k], want.center, rtol=1e-9)


def test_threads_and_order_change_nothing():
    X, y = problems()

    def fill(run, data, signs):
        data[...], signs[...] = X[run], y[run]

    options = {"init": "auto", "n_init": 3, "rng": 1}
    a = hard_em_many(X, y, **BELIEF, **options)
    b = hard_em_many(fill, shape=X.shape, n_threads=3, **BELIEF, **options)
    np.testing.assert_array_equal(a.centers, b.centers)
    np.testing.assert_array_equal(a.energies, b.energies)
    # the lowest of the starts: Hebb alone cannot be lower
    assert (a.energies <= hard_em_many(X, y, **BELIEF).energies + 1e-9).all()
    assert len(set(a.winners)) > 1


def test_ends_are_said():
    X, y = problems()
    none = hard_em_many(X, y, contamination=0.9999, noise_variance=0.125)
    assert set(none.status) == {FitStatus.ALL_REJECTED}
    early = soft_em_many(X, y, **BELIEF, max_iter=2, tol=1e-12)
    assert set(early.status) == {FitStatus.MAX_ITER}
    assert not early.converged.any()
    assert "0 converged" in repr(early)
    assert list(early.to_frame()["status"]) == ["MAX_ITER"] * RUNS


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"contamination": 0.0}, ParameterError, "hebb"),
        ({"contamination": [0.5, 0.5]}, ParameterError, "contamination"),
        ({"noise_variance": -1.0}, ParameterError, "noise_variance"),
        ({"init": "spectral"}, ParameterError, "init"),
        ({"init": np.zeros((2, N))}, DataError, "init"),
        ({"max_iter": 0}, ParameterError, "max_iter"),
        ({"tol": 2.0}, ParameterError, "tol"),
        ({"n_threads": 0}, ParameterError, "n_threads"),
        ({"y": np.zeros((RUNS, P))}, DataError, "run 0"),
        ({"y": np.ones((RUNS, 2))}, DataError, "labels"),
        ({"X": np.ones((P, N))}, DataError, "runs"),
        ({"X": np.full((RUNS, P, N), np.nan)}, DataError, "run 0"),
        ({"X": lambda run, X, y: None}, ParameterError, "shape"),
    ],
)
def test_bad_input_is_named(change, error, says):
    X, y = problems()
    options = {"X": X, "y": y, **BELIEF} | change
    with pytest.raises(error, match=says):
        soft_em_many(options.pop("X"), options.pop("y"), **options)
