import numpy as np
import pytest

from outlearn.inference.covariance import (
    Covariance,
    cross,
    estimate,
    moment,
    oracle_shrinkage,
    passes_for_a_sphere,
)
from outlearn.inference.pooling import looks_spherical


def _matrix(structure, values, n):
    if structure == "spherical":
        return float(values) * np.eye(n)
    return np.diag(values) if structure == "diag" else values


@pytest.mark.parametrize("structure", ["spherical", "diag", "tied"])
def test_agrees_with_the_full_matrix(structure):
    rng = np.random.default_rng(0)
    n = 4
    A = rng.standard_normal((n, n))
    values = {"spherical": 1.7, "diag": rng.uniform(0.5, 2, n), "tied": A @ A.T + np.eye(n)}[structure]
    cov = Covariance(structure=structure, values=values, n_total=n)
    full = _matrix(structure, values, n)
    Z = rng.standard_normal((6, n))
    np.testing.assert_allclose(cov.solve(Z), np.linalg.solve(full, Z.T).T)
    np.testing.assert_allclose(cov.log_det, np.linalg.slogdet(full)[1])
    np.testing.assert_allclose(cov.square_distances(Z), np.einsum("ij,jk,ik->i", Z, np.linalg.inv(full), Z))
    np.testing.assert_allclose(cov.mean_variance, np.trace(full) / n)
    w = rng.uniform(size=6)
    M = moment(structure, Z, w)
    np.testing.assert_allclose(cov.trace_solve(M), w @ cov.square_distances(Z))
    np.testing.assert_allclose(cross(structure, Z, Z), moment(structure, Z, np.ones(6)))


def test_directions_without_data_count():
    inside = np.diag([2.0, 3.0])
    cov = Covariance(structure="tied", values=inside, n_total=5, outside=0.5)
    np.testing.assert_allclose(cov.log_det, np.log(6.0) + 3 * np.log(0.5))
    np.testing.assert_allclose(cov.mean_variance, (5.0 + 1.5) / 5)


def test_shrinkage_keeps_wide_data_invertible_and_fades_with_examples():
    rng = np.random.default_rng(1)
    shape = np.sqrt(np.linspace(0.2, 3.0, 30))
    shares = []
    for p in (15, 100, 50_000):
        Z = rng.standard_normal((p, 30)) * shape
        scatter = Z.T @ Z
        shares.append(oracle_shrinkage(scatter, p, 30))
        pull = p * shares[-1] / (1 - shares[-1])
        target = np.trace(scatter) / p / 30
        cov = estimate("tied", scatter, p, n_total=30, target=target, pull=pull, floor=1e-12)
        assert np.linalg.eigvalsh(cov.values)[0] > 0.0
    assert shares[0] > shares[1] > shares[2]
    assert shares[2] < 0.02


def test_a_sphere_passes_and_little_else_does():
    rng = np.random.default_rng(0)
    labels, ones = np.arange(200) % 2, np.ones(200)
    for n in (30, 200, 1000):
        plain = rng.standard_normal((200, n))
        assert passes_for_a_sphere(plain + 3.0 * labels[:, None], labels, ones)
        spike = plain + 4.0 * rng.standard_normal((200, 1)) / np.sqrt(n)  # two centres, one direction
        assert passes_for_a_sphere(spike, labels, ones)
        assert not passes_for_a_sphere(plain * rng.uniform(0.7, 1.3, n), labels, ones)
        assert not passes_for_a_sphere(spike * rng.uniform(0.7, 1.3, n), labels, ones)
        near = plain + 0.7 * np.roll(plain, 1, axis=1)
        assert not passes_for_a_sphere(near, labels, ones)
    twice = np.repeat(plain, 2, axis=0)
    assert passes_for_a_sphere(plain, labels, 2.0 * ones) == passes_for_a_sphere(
        twice, np.repeat(labels, 2), np.ones(400)
    )


def test_few_examples_are_judged_by_their_degrees_of_freedom():
    rng = np.random.default_rng(0)
    labels, ones = np.arange(20) % 2, np.ones(20)
    for _ in range(5):
        plain = rng.standard_normal((20, 200))
        assert passes_for_a_sphere(plain, labels, ones)
        assert looks_spherical(plain, labels, ones)
        assert not passes_for_a_sphere(plain * rng.uniform(0.6, 1.4, 200), labels, ones)
