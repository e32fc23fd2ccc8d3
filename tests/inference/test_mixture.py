from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from outlearn.inference import soft_em
from outlearn.inference.evidence import climb_all, starts_for
from outlearn.inference.folds import folds
from outlearn.inference.mixture import Beliefs, simplex
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_fit import fit_mixture
from outlearn.inference.mixture_step import (
    covariance_energy,
    maximise,
    mixture_at,
    prior_energy,
    shrinkage_for,
)
from outlearn.inference.posterior import FittedMixture
from outlearn.model import Ensemble, overlaps, sample


def _data(n=6, p=80, k=3, structure="spherical", seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, p)
    X = rng.standard_normal((p, n)) + 2.0 * rng.standard_normal((k, n))[labels] + 5.0
    return MixtureData(X, labels, k, structure), X, labels


def _state_means(m):
    return np.vstack([m.means, m.garbage_center])


def _expected(data, m, W, shrinkage):
    """Expected complete log-posterior, term by term over examples."""
    total = -covariance_energy(m, shrinkage) if shrinkage is not None else 0.0
    ridge_energy = prior_energy(data, m)
    Z = data.block(slice(None))
    log_states = m.log_states()[data.labels]
    for z, mean in enumerate(_state_means(m)):
        cov = m.garbage_covariance if z == data.n_classes else m.covariance
        density = -0.5 * (cov.square_distances(Z - mean) + cov.log_det + data.n_total * np.log(2 * np.pi))
        used = W[:, z] > 0
        total += float(W[used, z] @ (density + log_states[:, z])[used])
    return total - ridge_energy


def test_simplex_is_regular():
    for k in (2, 3, 7):
        v = simplex(k)
        gram = v @ v.T
        np.testing.assert_allclose(np.diag(gram), 1.0)
        np.testing.assert_allclose(gram[~np.eye(k, dtype=bool)], -1.0 / (k - 1))
        np.testing.assert_allclose(v.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("structure", ["spherical", "diag", "tied"])
@pytest.mark.parametrize("garbage", ["shared", "spread", "free"])
def test_m_step_is_the_maximum(structure, garbage):
    if structure == "tied" and garbage == "spread":
        pytest.skip("a full covariance of its own comes with a centre of its own")
    data, _, _ = _data(structure=structure)
    beliefs = Beliefs(label_noise=None, center_variance=0.7, garbage=garbage)
    start = mixture_at(data, beliefs, data.hebb)
    start = fit_mixture(data, beliefs, start, max_iter=3).mixture
    W = data.responsibilities(start)
    stats = data.statistics_of(W)
    shrinkage = shrinkage_for(data, data.count, data.total)
    best = maximise(data, stats, beliefs, shrinkage, start)
    # centres at the covariances they were found with
    at_centers = replace(
        best,
        covariance=start.covariance,
        garbage_covariance=start.covariance if garbage == "shared" else start.garbage_covariance,
    )
    value = _expected(data, at_centers, W, None)
    rng = np.random.default_rng(1)
    for name in ("midpoint", "centers", "garbage_center"):
        if name == "garbage_center" and garbage != "free":
            continue
        for _ in range(3):
            d = 1e-3 * rng.standard_normal(getattr(best, name).shape)
            for sign in (-1, 1):
                moved = replace(at_centers, **{name: getattr(best, name) + sign * d})
                if name == "midpoint" and garbage != "free":
                    moved = replace(moved, garbage_center=moved.midpoint)
                assert _expected(data, moved, W, None) < value
    # covariances and fractions at the new centres, the centres' prior aside (it is frozen in this step)
    far = replace(best, center_variance=1e12)
    value = _expected(data, far, W, shrinkage)
    for factor in (0.98, 1.02):
        wider = best.covariance.scaled(factor)
        moved = replace(
            far,
            covariance=wider,
            garbage_covariance=wider if garbage == "shared" else best.garbage_covariance,
        )
        assert _expected(data, moved, W, shrinkage) < value
    for i, j in ((0, 1), (1, 2), (0, 2)):
        states = best.states.copy()
        states[i] += 1e-3
        states[j] -= 1e-3
        assert _expected(data, replace(far, states=states), W, shrinkage) < value


def test_likelihood_is_that_of_the_written_density():
    data, X, labels = _data(k=3, structure="diag")
    beliefs = Beliefs(label_noise=0.1, contamination=0.3, garbage="free")
    m = fit_mixture(data, beliefs, mixture_at(data, beliefs, data.hebb), max_iter=5).mixture
    model = FittedMixture.of(data, m)
    direct = np.zeros(len(X))
    marginal = np.zeros(len(X))
    for k in range(3):
        normal = multivariate_normal(model.means[k], np.diag(m.covariance.values)).pdf(X)
        direct += normal * m.class_prior[k] * np.where(labels == k, 0.6, 0.1 / 2)
        marginal += normal * m.class_prior[k] * 0.7
    normal = multivariate_normal(model.garbage_center, np.diag(m.garbage_covariance.values)).pdf(X)
    direct += normal * 0.3 * m.garbage_labels[labels]
    marginal += normal * 0.3
    np.testing.assert_allclose(data.statistics(m).log_likelihood, np.log(direct).sum(), rtol=1e-10)
    np.testing.assert_allclose(model.log_density(X), np.log(marginal), rtol=1e-10)
    np.testing.assert_allclose(
        data.log_label_given_input(m)[:5],
        np.log(direct[:5] / marginal[:5]),
        atol=0.5,  # labels of garbage: frequencies, not a fair coin
    )


@pytest.mark.parametrize("structure", ["spherical", "diag", "tied"])
def test_energy_never_rises_at_fixed_hyperparameters(structure):
    data, _, _ = _data(structure=structure, p=120)
    beliefs = Beliefs(label_noise=0.0, center_variance=1.0)
    fit = fit_mixture(
        data,
        beliefs,
        mixture_at(data, beliefs, data.hebb),
        accelerate=False,
        record=True,
        tol=1e-9,
        max_iter=60,
    )
    steps = np.diff(fit.energies[12:])
    assert (steps <= 1e-6 * abs(fit.energies[-1])).all()


def test_agrees_with_the_papers_engine():
    data = sample(Ensemble.from_contamination(0.5, gamma=10.0), 40, 1200, rng=3)
    # both classes made equally frequent and the data centred, so that the midpoint is the origin
    X = np.vstack([data.y[:, None] * data.X] * 2) * np.repeat([1, -1], 1200)[:, None]
    y = np.repeat([1, 0], 1200)
    mixture_data = MixtureData(X, y, 2, "spherical")
    beliefs = Beliefs(contamination=0.5, noise_variance=0.1, center_variance=1 / 40)
    fit = fit_mixture(mixture_data, beliefs, mixture_at(mixture_data, beliefs, mixture_data.hebb), tol=1e-9)
    paper = soft_em(
        X, 2 * y - 1, contamination=0.5, noise_variance=0.1, center_variance=1 / 40, init="hebb", tol=1e-9
    )
    np.testing.assert_allclose(fit.mixture.centers[0], paper.center, atol=1e-6)


def test_rotation_into_the_span_changes_nothing():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20, 100))
    labels = np.arange(20) % 2
    beliefs = Beliefs(contamination=0.3, noise_variance=1.0, center_variance=0.1)
    narrow = MixtureData(X, labels, 2, "spherical")
    assert narrow.span is not None
    fit = fit_mixture(narrow, beliefs, mixture_at(narrow, beliefs, narrow.hebb), tol=1e-8)
    wide = object.__new__(MixtureData)
    wide.__dict__.update(narrow.__dict__)
    from outlearn.inference.rows import Rows

    wide.span, wide.rows = None, Rows.of(X, center=narrow.origin)
    wide.use(narrow.weights)
    same = fit_mixture(wide, beliefs, mixture_at(wide, beliefs, wide.hebb), tol=1e-8)
    np.testing.assert_allclose(
        FittedMixture.of(narrow, fit.mixture).means, FittedMixture.of(wide, same.mixture).means, atol=1e-7
    )


def test_contamination_is_found_where_examples_vouch_for_themselves():
    data = sample(Ensemble.from_contamination(0.8, gamma=10.0), 300, 300, rng=0)
    space = MixtureData(data.X, (data.y + 1) // 2, 2, "spherical")
    beliefs = Beliefs()
    starts = starts_for(space, beliefs, 1, np.random.default_rng(0))
    naive = fit_mixture(space, beliefs, starts[0][1])
    found = climb_all(space, beliefs, starts)[0]
    assert naive.mixture.states[2] < 0.1  # plain EM accepts everything
    assert abs(found.mixture.states[2] - 0.8) < 0.15
    c = found.mixture.centers[0]
    assert overlaps(c, data.center).angle < overlaps(naive.mixture.centers[0], data.center).angle - 0.03


def test_folds_follow_content():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    fold = folds(X, y, 3)
    order = rng.permutation(30)
    np.testing.assert_array_equal(folds(X[order], y[order], 3), fold[order])
    np.testing.assert_array_equal(folds(np.repeat(X, 2, axis=0), np.repeat(y, 2), 3), np.repeat(fold, 2))
    assert np.bincount(fold).tolist() == [10, 10, 10]


@pytest.mark.parametrize("structure", ["spherical", "diag", "tied"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("hard", [False, True])
def test_compiled_pass_is_the_general_one(structure, dtype, hard, monkeypatch):
    rng = np.random.default_rng(0)
    labels = (rng.random(203) < 0.3).astype(int)
    X = (rng.standard_normal((203, 7)) + 0.8 * labels[:, None] + 3.0).astype(dtype)
    weights = rng.integers(0, 3, 203).astype(float)
    data = MixtureData(X, labels, 2, structure, sample_weight=weights)
    beliefs = Beliefs(contamination=0.4)
    mixture = fit_mixture(data, beliefs, mixture_at(data, beliefs, data.hebb), max_iter=3).mixture
    assert data._is_plain(mixture)
    fast = data.statistics(mixture, spread=0.3, hard=hard)
    monkeypatch.setattr(MixtureData, "_is_plain", lambda self, mixture: False)
    slow = data.statistics(mixture, spread=0.3, hard=hard)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-3, "atol": 2e-2}
    np.testing.assert_allclose(fast.sums, slow.sums, **close)
    np.testing.assert_allclose(fast.counts, slow.counts, **close)
    assert fast.log_likelihood == pytest.approx(
        slow.log_likelihood, rel=1e-9 if dtype == np.float64 else 1e-4
    )
