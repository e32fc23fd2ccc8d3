import numpy as np
import pytest
from scipy import stats

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, sample

ENSEMBLE = Ensemble(eta=0.7, gamma=4.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_law_of_the_data(dtype, order):
    n, p = 40, 20_000
    data = sample(ENSEMBLE, n, p, rng=3, dtype=dtype, order=order)
    assert data.X.dtype == dtype
    assert data.X.flags[f"{order}_CONTIGUOUS"]
    assert data.center @ data.center == pytest.approx(n)
    assert data.informative.mean() == pytest.approx(ENSEMBLE.informative_fraction, abs=4 * 0.5 / p**0.5)
    assert set(np.unique(data.y)) == {-1, 1}
    assert abs(data.y.mean()) < 4 / p**0.5
    # what is left after taking the clusters' centres away is N(0, 1/gamma), independent of V and y
    noise = data.X - np.outer(data.informative * data.y, data.center / np.sqrt(n)).astype(dtype)
    for part in (data.informative, ~data.informative, data.y > 0):
        standard = (noise[part] * np.sqrt(ENSEMBLE.gamma)).astype(np.float64).ravel()
        assert stats.kstest(standard, "norm").pvalue > 1e-3
    covariance = np.cov(noise.astype(np.float64).T) * ENSEMBLE.gamma
    assert np.abs(covariance - np.eye(n)).max() < 5.5 / p**0.5


def test_one_seed_one_dataset():
    first, again = (sample(ENSEMBLE, 10, 20, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, sample(ENSEMBLE, 10, 20, rng=6).X)
    generator = np.random.default_rng(1)
    assert not np.array_equal(sample(ENSEMBLE, 10, 20, generator).X, sample(ENSEMBLE, 10, 20, generator).X)


def test_a_given_center_is_kept():
    center = np.arange(5.0)
    assert sample(ENSEMBLE, 5, 10, rng=0, center=center).center.tolist() == center.tolist()


def test_no_outliers_at_minus_infinity():
    assert sample(Ensemble(eta=-np.inf, gamma=1.0), 3, 50, rng=0).informative.all()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 2.5}, "n_samples"),
        ({"n_features": True}, "n_features"),
        ({"dtype": int}, "dtype"),
        ({"order": "A"}, "order"),
        ({"center": [1.0, 2.0]}, "center"),
        ({"center": [1.0, np.nan, 0.0]}, "center"),
        ({"center": "north"}, "center"),
        ({"dtype": "x"}, "dtype"),
        ({"rng": "seed"}, "rng"),
        ({"rng": -1}, "rng"),
        ({"ensemble": (0.0, 10.0)}, "ensemble"),
        ({"ensemble": Ensemble(0.0, 1e-80), "dtype": np.float32}, "dtype"),
        ({"n_samples": 2**60}, "n_samples"),
    ],
)
def test_bad_requests_are_named(arguments, name):
    with pytest.raises(ParameterError, match=name):
        sample(**({"ensemble": ENSEMBLE, "n_features": 3, "n_samples": 4, "rng": 0} | arguments))
