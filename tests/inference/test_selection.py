"""Soft and hard selection: the right energy, its stationary points, never upward."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.hard import hard_em
from outlearn.inference.hebb import hebb
from outlearn.inference.results import FitStatus
from outlearn.inference.rows import Rows
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, hard_energy, overlaps, sample, soft_energy

EVERYTHING = ("contamination", "noise_variance", "center_variance")
BELIEF = Ensemble(eta=0.5, gamma=4.0, gamma_tilde=5.0, eta_tilde=0.8)


def problem(n=12, p=150, ensemble=BELIEF, seed=0):
    data = sample(ensemble, n, p, rng=seed)
    belief = {
        "contamination": ensemble.replace().outlier_fraction,
        "noise_variance": 1 / ensemble.gamma_tilde,
    }
    belief["contamination"] = 1 / (1 + np.exp(-ensemble.eta_tilde))
    return data, belief


def variational_energy(fit, X, y, *, spread, hard):
    """F of the engine's docstring, written out on its own."""
    z = X * y[:, None]
    p, n = z.shape
    c, s2, tau2, p0 = fit.center, fit.noise_variance, fit.center_variance, fit.contamination
    size = c @ c + n * spread
    ln_informative = np.log1p(-p0) + (z @ c - size / 2) / s2
    ln_mixture = (np.maximum if hard else np.logaddexp)(np.log(p0), ln_informative).sum()
    kl = 0.5 * n * ((c @ c / n + spread) / tau2 - 1 - np.log(spread / tau2))
    return p * np.log(2) + 0.5 * p * n * np.log(2 * np.pi * s2) + (z * z).sum() / (2 * s2) - ln_mixture + kl


@pytest.mark.parametrize("max_iter", [1, 4, 500])
def test_soft_energy_is_the_models(max_iter):
    data, belief = problem()
    fit = soft_em(data.X, data.y, **belief, max_iter=max_iter, rng=0)
    J = fit.center * np.sqrt(12)
    assert fit.energy == pytest.approx(soft_energy(J, data.X, data.y, BELIEF), rel=1e-13)


@pytest.mark.parametrize("max_iter", [1, 4, 500])
def test_hard_energy_is_the_models(max_iter):
    data, belief = problem()
    fit = hard_em(data.X, data.y, **belief, max_iter=max_iter, rng=0)
    assert fit.energy == pytest.approx(hard_energy(fit.inlier_proba, data.X, data.y, BELIEF), rel=1e-13)
    kept = fit.inlier_proba @ (data.X * data.y[:, None])
    np.testing.assert_allclose(fit.center, kept / (fit.inlier_proba.sum() + 12 / 5.0), rtol=1e-10)


def test_soft_fixed_point_is_stationary():
    data, belief = problem()
    fit = soft_em(data.X, data.y, **belief, tol=1e-12, rng=0)
    J, h = fit.center * np.sqrt(12), 1e-4
    assert fit.converged
    for k in range(12):
        e = np.zeros(12)
        e[k] = h
        slope = soft_energy(J + e, data.X, data.y, BELIEF) - soft_energy(J - e, data.X, data.y, BELIEF)
        assert abs(slope / (2 * h)) < 1e-5  # the same step from J = 0 has slopes of order 10


def test_learned_contamination_and_noise_are_stationary():
    data, belief = problem(n=20, p=2000)
    fit = soft_em(data.X, data.y, **belief, learn=EVERYTHING[:2], tol=1e-12, max_iter=5000, rng=0)
    J = fit.center * np.sqrt(20)
    eta, gamma = np.log(fit.contamination / (1 - fit.contamination)), 1 / fit.noise_variance

    def energy(d_eta, d_gamma):
        return soft_energy(J, data.X, data.y, Ensemble(eta=eta + d_eta, gamma=gamma * (1 + d_gamma)))

    assert fit.converged
    h = 1e-3
    assert abs(energy(h, 0) - energy(-h, 0)) / (2 * h) < 2e-3
    assert abs(energy(0, h) - energy(0, -h)) / (2 * h) < 2e-2  # third derivatives: P N h^2/3
    assert energy(0, 0) < min(energy(0.1, 0), energy(-0.1, 0), energy(0, 0.01), energy(0, -0.01))
    assert fit.contamination == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.04)
    assert fit.noise_variance == pytest.approx(0.25, rel=0.03)


@pytest.mark.parametrize("hard", [False, True])
def test_learned_center_variance_minimises_the_variational_energy(hard):
    data, belief = problem(n=30, p=1000)
    em = hard_em if hard else soft_em
    fit = em(data.X, data.y, **belief, learn=EVERYTHING, tol=1e-12, max_iter=5000, init="spectral")
    kept = fit.inlier_proba.sum()
    spread = 1 / (1 / fit.center_variance + kept / fit.noise_variance)
    base = variational_energy(fit, data.X, data.y, spread=spread, hard=hard)
    assert fit.energy == pytest.approx(base, rel=1e-12)
    assert fit.center_variance == pytest.approx(fit.center @ fit.center / 30 + spread, rel=1e-6)
    h = 1e-3
    for name in EVERYTHING:
        slopes = []
        for sign in (1, -1):
            moved = {n: getattr(fit, n) * (1 + sign * h * (n == name)) for n in (*EVERYTHING, "center")}
            slopes.append(variational_energy(_like(moved), data.X, data.y, spread=spread, hard=hard))
        assert min(slopes) > base - 1e-6, name
        assert abs(slopes[0] - slopes[1]) / (2 * h) < 0.05, name
    assert variational_energy(fit, data.X, data.y, spread=spread * 1.02, hard=hard) > base
    assert variational_energy(fit, data.X, data.y, spread=spread / 1.02, hard=hard) > base


class _like:
    def __init__(self, values):
        self.__dict__.update(values)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("em", [soft_em, hard_em])
@pytest.mark.parametrize("learn", [(), ("contamination", "noise_variance"), EVERYTHING])
@pytest.mark.parametrize("eta", [0.0, 2.5])
def test_energy_never_rises(accelerate, em, learn, eta):
    data = sample(Ensemble(eta=eta, gamma=6.0), 40, 800, rng=3)
    for start in ("random", "spectral"):
        fit = em(
            data.X,
            data.y,
            contamination=0.6,
            noise_variance=0.2,
            learn=learn,
            accelerate=accelerate,
            init=start,
            n_init=1,
            rng=4,
            trace=True,
        )
        slack = 1e-13 * np.abs(fit.energies).max() + 1e-9
        assert (np.diff(fit.energies) <= slack).all()
        assert fit.energy <= fit.energies[-1] + slack


def test_accelerated_and_plain_reach_the_same_point():
    data = sample(Ensemble(eta=1.0, gamma=10.0), 50, 1000, rng=0)
    options = {"contamination": 0.73, "noise_variance": 0.1, "init": "hebb", "tol": 1e-10}
    plain = soft_em(data.X, data.y, accelerate=False, **options)
    fast = soft_em(data.X, data.y, accelerate=True, **options)
    assert fast.n_reads < plain.n_reads
    np.testing.assert_allclose(fast.center, plain.center, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_hard_multi_start_finds_the_best_selection_of_all(seed):
    e = Ensemble(eta=0.7, gamma=2.0)
    data = sample(e, 2, 10, rng=seed)
    best = min(hard_energy(V, data.X, data.y, e) for V in itertools.product((0, 1), repeat=10))
    fit = hard_em(data.X, data.y, contamination=e.outlier_fraction, noise_variance=0.5, n_init=200, rng=seed)
    assert fit.energy == pytest.approx(best, abs=1e-9)


def test_order_parameters_of_the_theory():
    soft, hard = Ensemble(eta=0.0, gamma=10.0), Ensemble(eta=1.0, gamma=10.0)
    data = sample(soft, 400, 8000, rng=2)
    fit = soft_em(data.X, data.y, contamination=0.5, noise_variance=0.1, rng=0, init="hebb")
    got = overlaps(20 * fit.center, data.center)
    np.testing.assert_allclose(got.angle, 0.0332, atol=0.002)
    np.testing.assert_allclose(got.Q, 0.9847, atol=0.02)
    data = sample(hard, 400, 8000, rng=2)
    fit = hard_em(data.X, data.y, contamination=hard.outlier_fraction, noise_variance=0.1, init="spectral")
    # the printed free energy would give 1.061; single samples scatter by 0.015
    np.testing.assert_allclose(overlaps(20 * fit.center, data.center).Q, 1.067, atol=0.02)


@pytest.mark.parametrize("em", [soft_em, hard_em])
def test_without_outliers_it_is_hebbs_rule(em):
    data, _ = problem()
    want = hebb(data.X, data.y, noise_variance=0.2)
    for contamination, tol in ((0.0, 1e-14), (1e-30, 1e-10)):
        fit = em(data.X, data.y, contamination=contamination, noise_variance=0.2, rng=0)
        np.testing.assert_allclose(fit.center, want.center, rtol=tol)
        assert (fit.inlier_proba > 1 - 1e-9).all()
        assert fit.converged
    e = Ensemble(eta=-np.inf, gamma=5.0)
    J = want.center * np.sqrt(12)
    assert want.energy == pytest.approx(soft_energy(J, data.X, data.y, e), rel=1e-13)
    np.testing.assert_allclose(J, (data.X * data.y[:, None]).sum(0) / np.sqrt(12) / (150 / 12 + 1 / 5))


@pytest.mark.parametrize("em", [soft_em, hard_em])
@pytest.mark.parametrize("learn", [(), EVERYTHING])
def test_sample_weights_count_examples(em, learn):
    data, belief = problem(n=8, p=120)
    counts = np.random.default_rng(0).integers(0, 3, size=120)
    options = {**belief, "learn": learn, "init": "hebb", "accelerate": False}
    weighted = em(data.X, data.y, sample_weight=counts, **options)
    repeated = em(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts), **options)
    np.testing.assert_allclose(weighted.center, repeated.center, rtol=1e-9)
    assert weighted.energy == pytest.approx(repeated.energy, rel=1e-12)
    assert weighted.n_iter == repeated.n_iter


@pytest.mark.parametrize("em", [soft_em, hard_em])
def test_units_do_not_matter(em):
    data, belief = problem()
    one = em(data.X, data.y, **belief, init="hebb")
    belief["noise_variance"] *= 1e6
    other = em(1e3 * data.X, data.y, **belief, center_variance=1e6 / 12, init="hebb")
    assert one.n_iter == other.n_iter
    np.testing.assert_allclose(other.center, 1e3 * one.center, rtol=1e-9)


@pytest.mark.parametrize("em", [soft_em, hard_em])
def test_storage_does_not_matter(em):
    data, belief = problem(n=15, p=3000)
    belief |= {"init": "spectral", "tol": 1e-6}
    want = em(data.X, data.y, **belief)
    for X, tol in (
        (np.asfortranarray(data.X), 1e-9),
        (sparse.csr_array(data.X), 1e-9),
        (np.repeat(data.X, 2, axis=1)[:, ::2], 1e-9),
        (data.X.astype(np.float32), 1e-4),
        (np.asfortranarray(data.X, dtype=np.float32), 1e-4),
    ):
        got = em(X, data.y, **belief)
        np.testing.assert_allclose(got.center, want.center, rtol=tol, atol=tol * 0.1)
        assert got.converged


def test_anything_that_reads_will_do():
    class Elsewhere:
        """Rows that are not in memory as far as the algorithm can see."""

        def __init__(self, rows):
            self._rows = rows
            for name in ("fields", "weighted_sums", "sweep", "square_norms"):
                setattr(self, name, getattr(rows, name))

        shape = property(lambda self: self._rows.shape)
        n_reads = property(lambda self: self._rows.n_reads)
        sample_weight = None

    data, belief = problem()
    want = soft_em(data.X, data.y, **belief, rng=0)
    got = soft_em(Elsewhere(Rows.of(data.X, data.y)), **belief, rng=0)
    np.testing.assert_allclose(got.center, want.center, rtol=1e-9)
    with pytest.raises(DataError, match="leave out y"):
        soft_em(Rows.of(data.X), data.y, **belief)


def test_rejecting_everything_is_said():
    data = sample(Ensemble(eta=0.0, gamma=10.0), 50, 100, rng=0)
    fit = hard_em(data.X, data.y, contamination=0.999, noise_variance=0.1, init="hebb")
    assert fit.status is FitStatus.ALL_REJECTED
    assert not fit.converged
    assert not fit.inlier_proba.any()
    assert not fit.center.any()


def test_a_centre_that_vanishes_is_said():
    garbage = np.random.default_rng(0).normal(size=(400, 20))
    fit = soft_em(garbage, contamination=0.9, noise_variance=1.0, learn=("center_variance",), init="hebb")
    assert fit.status is FitStatus.COLLAPSED


def test_every_start_is_reported():
    data, belief = problem()
    fit = hard_em(data.X, data.y, **belief, n_init=3, rng=0)
    names = [s.name for s in fit.starts]
    assert names == ["hebb", "spectral", "soft", "random", "random", "random"]
    assert min(s.energy for s in fit.starts) >= fit.energy - 1e-9
    assert sum(s.overlap == 1.0 for s in fit.starts) >= 1
    again = hard_em(data.X, data.y, **belief, n_init=3, rng=0)
    np.testing.assert_array_equal(fit.center, again.center)


def test_max_iter_is_said():
    data, belief = problem()
    for accelerate in (False, True):
        fit = soft_em(data.X, data.y, **belief, max_iter=2, tol=1e-12, accelerate=accelerate, rng=0)
        assert fit.status is FitStatus.MAX_ITER
        assert fit.n_iter == 2
        assert fit.residual > 1e-12


@pytest.mark.parametrize("em", [soft_em, hard_em])
@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"contamination": 1.0}, "contamination"),
        ({"contamination": -0.1}, "contamination"),
        ({"contamination": "auto"}, "contamination"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": np.nan}, "noise_variance"),
        ({"center_variance": -1.0}, "center_variance"),
        ({"center_variance": np.inf}, "center_variance"),
        ({"learn": ("gamma",)}, "learn"),
        ({"init": "nowhere"}, "init"),
        ({"init": [1.0, 2.0]}, "init"),
        ({"init": [np.nan]}, "init"),
        ({"init": [1e200]}, "init"),
        ({"rng": "seed"}, "rng"),
        ({"n_init": -1}, "n_init"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_bad_parameters_are_named(em, change, names):
    with pytest.raises(ParameterError, match=names):
        em([[1.0], [2.0]], [1, -1], **({"contamination": 0.5, "noise_variance": 1.0} | change))


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        ([[np.nan]], [1], "NaN"),
        ([[1.0]], [2], "labels"),
        ([[1.0]], [1, 1], "1 rows"),
        ([[1.0]], ["yes"], "labels"),
        ([[1.0]], [1j], "labels"),
        ([[1e-200]], [1], "too small to square"),
    ],
)
def test_bad_data_names_the_fault(X, y, says):
    with pytest.raises(DataError, match=says):
        soft_em(X, y, contamination=0.5, noise_variance=1.0)


def test_noise_of_nothing_cannot_be_learned():
    with pytest.raises(DataError, match="zero"):
        soft_em(np.zeros((3, 2)), contamination=0.5, noise_variance=1.0, learn=("noise_variance",))
