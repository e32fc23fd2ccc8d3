"""The energies are minus the logarithm of a density: counted, integrated, differentiated."""

import itertools

import numpy as np
import pytest
from scipy import integrate

from outlearn.exceptions import DataError, ParameterError
from outlearn.model import Ensemble, hard_energy, sample, soft_energy

MATCHED = Ensemble(eta=0.8, gamma=3.0)
MISMATCHED = Ensemble(eta=0.8, gamma=3.0, gamma_tilde=5.0, eta_tilde=-0.4)


def joint_density(J, V, X, y, e):
    """P(D, V, J) written factor by factor."""
    n = X.shape[1]
    p1 = 1 / (1 + np.exp(e.eta_tilde))
    value = normal(np.asarray(J), 1.0)
    for x, s, v in zip(X, y, V, strict=True):
        value *= 0.5 * (p1 if v else 1 - p1)
        value *= normal(x - v * s * np.asarray(J) / np.sqrt(n), 1 / e.gamma_tilde)
    return value


def normal(x, variance):
    return np.prod(np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance))


@pytest.mark.parametrize("ensemble", [MATCHED, MISMATCHED])
@pytest.mark.parametrize("seed", range(3))
def test_soft_energy_sums_over_every_selection(ensemble, seed):
    data = sample(ensemble, 3, 6, rng=seed)
    J = np.random.default_rng(seed).normal(size=3)
    total = sum(joint_density(J, V, data.X, data.y, ensemble) for V in itertools.product((0, 1), repeat=6))
    assert soft_energy(J, data.X, data.y, ensemble) == pytest.approx(-np.log(total), rel=1e-12)


@pytest.mark.parametrize("ensemble", [MATCHED, MISMATCHED])
@pytest.mark.parametrize("V", [(0, 0, 0), (1, 0, 1), (1, 1, 1)])
def test_hard_energy_integrates_over_the_vector(ensemble, V):
    data = sample(ensemble, 2, 3, rng=7)
    # the trapezoidal rule is exact to rounding for a smooth function that dies out inside the square
    axis = np.linspace(-9.0, 9.0, 91)
    grid = [joint_density((a, b), V, data.X, data.y, ensemble) for a in axis for b in axis]
    total = np.sum(grid) * (axis[1] - axis[0]) ** 2
    assert hard_energy(V, data.X, data.y, ensemble) == pytest.approx(-np.log(total), rel=1e-10)


def test_both_energies_give_the_same_evidence():
    """Sum over V of exp(-H_h) equals the integral over J of exp(-H): both are P(D)."""
    data = sample(MATCHED, 1, 5, rng=2)
    from_hard = sum(
        np.exp(-hard_energy(V, data.X, data.y, MATCHED)) for V in itertools.product((0, 1), repeat=5)
    )
    from_soft, _ = integrate.quad(lambda j: np.exp(-soft_energy([j], data.X, data.y, MATCHED)), -9, 9)
    assert from_hard == pytest.approx(from_soft, rel=1e-8)


def test_limit_without_outliers_is_finite():
    e = Ensemble(eta=-np.inf, gamma=2.0)
    data = sample(e, 3, 4, rng=0)
    assert np.isfinite(soft_energy(np.ones(3), data.X, data.y, e))
    assert np.isfinite(hard_energy(np.ones(4), data.X, data.y, e))
    assert hard_energy([0, 1, 1, 1], data.X, data.y, e) == np.inf


@pytest.mark.parametrize(
    ("J", "X", "y"),
    [([1.0, 2.0], [[1.0]], [1]), ([1.0], [1.0], [1]), ([1.0], [[1.0]], [0]), ([1.0], [[1.0]], [1, 1])],
)
def test_shapes_that_do_not_match(J, X, y):
    with pytest.raises(DataError):
        soft_energy(J, X, y, MATCHED)


def test_selection_must_be_zero_or_one():
    with pytest.raises(DataError, match="0 or 1"):
        hard_energy([0.5], [[1.0]], [1], MATCHED)


@pytest.mark.parametrize("energy", [soft_energy, hard_energy])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200, 1j, "x"])
def test_values_that_are_no_numbers_are_named(energy, bad):
    with pytest.raises(DataError, match=r"^X"):
        energy([1.0], [[bad]], [1], MATCHED)
    with pytest.raises(DataError, match=r"^[JV]"):
        energy([bad], [[1.0]], [1], MATCHED)
    with pytest.raises(DataError, match=r"^y"):
        energy([1.0], [[1.0]], [bad], MATCHED)
    with pytest.raises(ParameterError, match="ensemble"):
        energy([1.0], [[1.0]], [1], "paper")
