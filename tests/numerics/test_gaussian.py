from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from outlearn.numerics import gaussian_average, gaussian_nodes


def test_moments_of_the_normal():
    average = gaussian_average(lambda x: np.stack([x**k for k in range(9)]))
    np.testing.assert_allclose(average.value, [1, 0, 1, 0, 3, 0, 15, 0, 105], atol=1e-12)
    assert (average.error < 1e-11).all()


@pytest.mark.parametrize("edge", [-7.3, -1.0, 0.0, 0.123456, 5.5, 11.0])
def test_a_jump_at_a_break_costs_nothing(edge):
    average = gaussian_average(lambda x: (x > edge).astype(float), [edge])
    assert average.value == pytest.approx(ndtr(-edge), rel=1e-12, abs=1e-30)


def test_a_missed_jump_shows_in_the_error():
    average = gaussian_average(lambda x: (x > 0.3).astype(float), max_refinements=3)
    actual = abs(average.value - ndtr(-0.3))
    assert average.error > 1e-6
    assert actual < 20 * average.error


@pytest.mark.parametrize("width", [1e-4, 1e-2, 1.0])
def test_a_steep_sigmoid_with_breaks_around_it(width):
    def f(x):
        return 0.5 * (1.0 + np.tanh((x - 0.7) / (2 * width)))

    steps = 0.7 + width * np.array([-40, -18, -8, -3, 0, 3, 8, 18, 40])
    pieces = np.unique(np.clip(np.concatenate([[-12, 12], steps]), -12, 12))
    expected = sum(
        quad(lambda x: f(x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi), a, b, epsabs=1e-15)[0]
        for a, b in pairwise(pieces)
    )
    average = gaussian_average(f, steps)
    assert average.value == pytest.approx(expected, abs=2e-14)


def test_nodes_never_straddle_a_break():
    x, w = gaussian_nodes([0.5, -2.0, np.nan, 40.0], order=4)
    assert w.sum() == pytest.approx(1.0, abs=1e-4)
    assert not np.any(np.isclose(x, 0.5))
