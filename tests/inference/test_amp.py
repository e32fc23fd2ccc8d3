"""Message passing: its free energy by derivatives and by counting, its path, its beliefs."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.amp import AmpStatus, amp
from outlearn.inference.prior import SelectionPrior
from outlearn.inference.rows import Rows
from outlearn.model import Ensemble, overlaps, sample

ALL = ("contamination", "noise_variance", "center_variance")


def draw(eta, n, p, seed, gamma=10.0):
    return sample(Ensemble(eta, gamma), n, p, rng=seed)


def outliers(eta):
    return float(expit(eta))


def bethe(W, values, m, s, prior, noise, tau2, Y):
    """The free energy as the documents write it, from beliefs alone."""
    u, second = W @ values, W @ values**2
    T, S = (second - u**2).sum(), s * m.size
    kl_v = stats.entropy(W, np.broadcast_to(prior, W.shape), axis=1).sum()
    kl_c = 0.5 * ((m @ m + S) / tau2 - m.size - m.size * np.log(s / tau2))
    return kl_v + kl_c - (u @ Y @ m - 0.5 * (u @ u * (m @ m + S) + m @ m * T)) / noise


def evidence_by_counting(Y, values, prior, noise, tau2):
    """-ln P(Y): sum over every assignment of V, the Gaussian integral over the centre in closed form."""
    p, n = Y.shape
    total = []
    for choice in itertools.product(range(len(values)), repeat=p):
        v = values[list(choice)]
        W, precision = v @ Y, 1 / tau2 + v @ v / noise
        total.append(
            np.log(prior[list(choice)]).sum()
            - 0.5 * n * np.log(tau2 * precision)
            + W @ W / (2 * noise**2 * precision)
        )
    flat = 0.5 * p * n * np.log(2 * np.pi * noise) + np.vdot(Y, Y) / (2 * noise)
    return flat - np.logaddexp.reduce(total)


@pytest.mark.parametrize("label_noise", [None, 0.2])
def test_free_energy_is_stationary_in_every_belief(label_noise):
    data = draw(1.0, 40, 120, seed=0)
    Y = data.X * data.y[:, None]
    found = amp(
        data.X,
        data.y,
        contamination=0.7,
        noise_variance=0.1,
        label_noise=label_noise,
        tol=1e-11,
        init="zero",
    )
    assert found.converged
    prior = np.asarray(SelectionPrior.of(0.7, label_noise).weights)
    W, m, s = found.posterior, found.center, found.center_std[0] ** 2

    def G(W=W, m=m, s=s):
        return bethe(W, found.values, m, s, prior, 0.1, 1 / 40, Y)

    assert found.free_energy == pytest.approx(G(), rel=1e-10)
    rng, step = np.random.default_rng(1), 1e-4
    toward = rng.normal(size=m.size)
    toward *= np.linalg.norm(m) / np.linalg.norm(toward)
    assert abs(G(m=m + step * toward) - G(m=m - step * toward)) / (2 * step) < 1e-5
    assert abs(G(s=s * (1 + step)) - G(s=s * (1 - step))) / (2 * step) < 1e-5
    tilt = rng.normal(size=W.shape)

    def tilted(t):
        new = W * np.exp(t * tilt)
        return new / new.sum(axis=1, keepdims=True)

    slope = (G(W=tilted(step)) - G(W=tilted(-step))) / (2 * step)
    assert abs(slope) < 1e-5
    # The test can fail: half a per cent off in the length of the centre is seen.
    assert abs(G(m=1.005 * m * (1 + step)) - G(m=1.005 * m * (1 - step))) / (2 * step) > 1e-2


def test_learned_parameters_make_the_evidence_stationary():
    data = draw(1.0, 40, 400, seed=3)
    Y = data.X * data.y[:, None]
    found = amp(data.X, data.y, contamination=0.6, noise_variance=0.2, learn=ALL, tol=1e-9, init="zero")
    W, m, s = found.posterior, found.center, found.center_std[0] ** 2
    u = W @ found.values
    T, S = (u * (1 - u)).sum(), s * m.size

    def total(p0, noise, tau2):
        # Second order in the couplings: their mean square y² is data, not the parameter.
        second_order = 0.5 * T * S * (1 / noise - found.noise_variance / noise**2)
        flat = 0.5 * Y.size * np.log(2 * np.pi * noise) + np.vdot(Y, Y) / (2 * noise)
        return flat + second_order + bethe(W, found.values, m, s, np.array([p0, 1 - p0]), noise, tau2, Y)

    at = np.array([found.contamination, found.noise_variance, found.center_variance])
    for k in range(3):
        up, down = at.copy(), at.copy()
        up[k] *= 1.001
        down[k] /= 1.001
        curvature = total(*up) + total(*down) - 2 * total(*at)
        slope = 0.5 * (total(*up) - total(*down))
        # A Newton step from here would move the parameter by less than a hundredth of 0.1 %.
        assert abs(slope) < 0.05 * curvature, k


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("label_noise", [None, 0.3])
def test_evidence_of_few_examples_is_that_of_counting(seed, label_noise):
    rng = np.random.default_rng(seed)
    n, p = 100, 8 if label_noise is None else 6
    c = rng.normal(size=n) / np.sqrt(n)
    prior = SelectionPrior.of(0.4, label_noise)
    values, weights = np.array(prior.values), np.array(prior.weights)
    v = rng.choice(values, p=weights, size=p)
    Y = np.outer(v, c) + rng.normal(size=(p, n)) * np.sqrt(0.3)
    exact = evidence_by_counting(Y, values, weights, 0.3, 1 / n)
    found = amp(Y, selection=prior, noise_variance=0.3, init="zero")
    assert found.converged
    # Labels by a coin cost ln 2 each; the approximation is wrong by 1/N per pair of examples.
    assert found.energy - p * np.log(2) == pytest.approx(exact, abs=0.25)
    assert abs(evidence_by_counting(Y, values, weights, 0.36, 1 / n) - exact) > 0.5


def bayes_q(alpha, eta, gamma, n_iter):
    """q_t of state evolution from q = 0, and the free energy at the last."""
    p1 = expit(-eta)
    x, w = np.polynomial.hermite_e.hermegauss(81)
    w = w / w.sum()
    q = [0.0]
    for _ in range(n_iter):
        g = gamma * q[-1]
        rate = alpha * gamma * p1 * (w @ expit(-eta + g / 2 + np.sqrt(g) * x))
        q.append(rate / (1 + rate))
    g = gamma * q[-1]
    soft = [w @ np.logaddexp(0, -eta + sign * g / 2 + np.sqrt(g) * x) for sign in (-1, 1)]
    f = -np.log1p(-q[-1]) / 2 - q[-1] / 2 - alpha * ((1 - p1) * soft[0] + p1 * soft[1])
    return np.array(q), f + alpha * np.logaddexp(0, -eta)


@pytest.mark.parametrize(("alpha", "eta"), [(4.0, 1.0), (10.0, 3.0)])
def test_path_follows_state_evolution(alpha, eta):
    n, runs, length = 300, 8, 7
    R, Q, G = np.zeros((runs, length)), np.zeros((runs, length)), np.zeros(runs)
    for seed in range(runs):
        data = draw(eta, n, int(alpha * n), seed)
        path = []
        found = amp(
            data.X,
            data.y,
            contamination=outliers(eta),
            noise_variance=0.1,
            damping=0.0,
            tol=1e-7,
            on_step=path.append,
        )
        assert found.converged
        assert found.n_reads == len(path)
        measured = [overlaps(c * np.sqrt(n), data.center) for c in path[:length]]
        R[seed], Q[seed] = zip(*measured, strict=True)
        G[seed] = found.free_energy / n
    q, f = bayes_q(alpha, eta, 10.0, 200)
    for measured in (R, Q):
        error = measured.std(axis=0, ddof=1) / np.sqrt(runs)
        gap = measured.mean(axis=0) - q[:length]
        assert (np.abs(gap) < 3.5 * error + 3.0 / n).all(), gap / (error + 1e-12)
    assert abs(G.mean() - f) < 3.5 * G.std(ddof=1) / np.sqrt(runs) + 3.0 / n
    # The steps are told apart: each measured overlap is far from the neighbouring step's theory.
    assert q[2] - q[1] > 0.05


def test_every_parameter_is_learned():
    """The mean of what six runs learn agrees with the truth, within an error that is small."""
    n, p, flips, learned = 150, 3000, 0.15, []
    for seed in range(6):
        data = draw(0.0, n, p, seed)
        rng = np.random.default_rng(seed + 100)
        y = np.where(rng.random(p) < flips, -data.y, data.y)
        found = amp(
            data.X,
            y,
            contamination=0.7,
            noise_variance=0.2,
            label_noise=0.3,
            center_variance=3.0 / n,
            learn=(*ALL, "label_noise"),
        )
        assert found.converged
        active = data.informative
        truth = (1 - active.mean(), (y != data.y)[active].mean(), 0.1, 1.0 / n)
        at = (found.contamination, found.label_noise, found.noise_variance, found.center_variance)
        learned.append(np.divide(at, truth))
    learned = np.array(learned)
    gap = learned.mean(axis=0) - 1.0
    error = learned.std(axis=0, ddof=1) / np.sqrt(len(learned))
    assert (np.abs(gap) < 4 * error + 1e-3).all(), (gap, error)
    assert (error < [0.02, 0.04, 0.002, 0.08]).all(), error


def test_beliefs_are_calibrated():
    data = draw(1.0, 100, 4000, seed=5)
    found = amp(data.X, data.y, contamination=outliers(1.0), noise_variance=0.1)
    p = found.inlier_proba
    for low, high in itertools.pairwise(np.quantile(p, [0.0, 0.25, 0.5, 0.75, 1.0])):
        group = (p >= low) & (p <= high)
        spread = np.sqrt((p[group] * (1 - p[group])).sum()) / group.sum()
        assert abs(data.informative[group].mean() - p[group].mean()) < 4 * spread
    deviation = (found.center - data.center / 10.0) / found.center_std
    assert deviation.std() == pytest.approx(1.0, abs=4 / np.sqrt(200))


def test_cavity_fields_are_those_of_the_fit_without_the_example():
    data = draw(1.0, 200, 600, seed=7)
    settings = {"contamination": outliers(1.0), "noise_variance": 0.1, "tol": 1e-8}
    found = amp(data.X, data.y, **settings)
    Y = data.X * data.y[:, None]
    chosen = np.arange(0, 600, 40)
    left_out = np.array(
        [Y[k] @ amp(np.delete(Y, k, axis=0), init=found.center, **settings).center for k in chosen]
    )
    plain = Y[chosen] @ found.center
    shift = np.abs(plain - left_out).mean()
    assert np.abs(found.cavity_fields[chosen] - left_out).mean() < 0.15 * shift
    # Fields of fresh examples: mean |m|² ~ R if informative, 0 if not; spread |m| sqrt(noise).
    square = found.center @ found.center
    for informative, mean in ((True, square), (False, 0.0)):
        fields = found.cavity_fields[data.informative == informative]
        assert fields.mean() == pytest.approx(mean, abs=5 * np.sqrt(0.1 * square / fields.size) + 0.05)
        assert fields.std() == pytest.approx(np.sqrt(0.1 * square), rel=0.15)


def test_weights_count_examples():
    data = draw(1.0, 30, 90, seed=2)
    counts = np.random.default_rng(0).integers(0, 4, size=90)
    settings = {"contamination": 0.7, "noise_variance": 0.1, "learn": ALL, "tol": 1e-9}
    weighted = amp(data.X, data.y, sample_weight=counts, **settings)
    repeated = amp(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts), **settings)
    np.testing.assert_allclose(weighted.center, repeated.center, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weighted.energy, repeated.energy, rtol=1e-10)


def test_sphere_holds_its_radius_and_agrees_with_the_gaussian():
    data = draw(1.0, 400, 800, seed=4)
    settings = {"contamination": outliers(1.0), "noise_variance": 0.1, "tol": 1e-8}
    ball = amp(data.X, data.y, center_prior="sphere", **settings)
    free = amp(data.X, data.y, **settings)
    assert ball.center @ ball.center + (ball.center_std**2).sum() == pytest.approx(1.0, rel=1e-9)
    assert abs(free.center @ free.center + (free.center_std**2).sum() - 1.0) > 1e-4
    assert np.linalg.norm(ball.center - free.center) < 0.1 * np.linalg.norm(free.center)
    # Safe steps end at the same point.
    slow = amp(data.X, data.y, center_prior="sphere", init=np.full(400, 0.05), **settings)
    np.testing.assert_allclose(slow.center, ball.center, atol=1e-6)


def test_the_mirror_image_is_turned_upright():
    """With flips learned, (c, V) and (-c, -V) fit alike; the answer trusts more labels than it doubts."""
    data = draw(0.0, 60, 1200, 4)
    settings = {"contamination": 0.5, "label_noise": 0.05, "noise_variance": 0.1, "learn": ("label_noise",)}
    center = data.center / np.sqrt(60)
    upright, mirrored = (amp(data.X, data.y, init=sign * center, **settings) for sign in (1.0, -1.0))
    assert mirrored.label_noise < 0.1
    np.testing.assert_allclose(mirrored.center, upright.center, atol=1e-4)
    np.testing.assert_allclose(mirrored.posterior, upright.posterior, atol=0.01)
    np.testing.assert_allclose(mirrored.cavity_fields, upright.cavity_fields, atol=1e-3)


def test_label_symmetric_start_finds_the_direction_up_to_sign():
    rng = np.random.default_rng(0)
    n, p = 100, 1500
    c = rng.normal(size=n) / np.sqrt(n)
    v = rng.choice([-1.0, 0.0, 1.0], p=[0.25, 0.5, 0.25], size=p)
    Y = np.outer(v, c) + rng.normal(size=(p, n)) * np.sqrt(0.1)
    found = amp(Y, contamination=0.5, label_noise=0.5, noise_variance=0.1)
    assert found.starts[0][0] == "spectral"
    assert found.converged
    cosine = found.center @ c / np.linalg.norm(found.center) / np.linalg.norm(c)
    assert abs(cosine) > 0.97


def correlated(seed, n=20, p=400):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(n, n)) * np.linspace(3, 0.05, n)[:, None]
    y = rng.choice([-1, 1], size=p)
    X = rng.standard_t(2, size=(p, n)) @ mix + y[:, None] * rng.normal(size=n)
    return X, y


def test_bare_algorithm_oscillates_where_the_safe_one_converges():
    """Few examples around an estimated midpoint: their sum over labels is gone, a direction in which the
    reaction term corrects what is not there."""
    data = draw(1.4, 2000, 200, seed=0)
    midpoint = 0.5 * (data.X[data.y > 0].mean(axis=0) + data.X[data.y < 0].mean(axis=0))
    settings = {"contamination": outliers(1.4), "noise_variance": 0.1, "max_iter": 200}
    bare = amp(data.X - midpoint, data.y, damping=0.0, **settings)
    assert bare.status is AmpStatus.DIVERGED
    safe = amp(data.X - midpoint, data.y, **settings)
    assert safe.converged
    assert any(step.safe for step in safe.steps)
    assert safe.energy < bare.energy
    damped = amp(data.X - midpoint, data.y, damping=0.7, **settings)
    assert "diverged" in repr(bare)
    assert np.isfinite(damped.center).all()


def test_steps_that_grow_are_taken_back():
    """Strong signal and a contamination far too high: the bare step multiplies the centre by 1/p1."""
    X = np.random.default_rng(1).standard_t(2, size=(40, 5)) + 1.0
    settings = {"contamination": 0.9, "noise_variance": 0.01, "center_variance": 1.0}
    bare = amp(X, damping=0.0, max_iter=100, **settings)
    assert bare.status is AmpStatus.DIVERGED
    assert np.isfinite(bare.center).all()
    assert amp(X, **settings).converged


@pytest.mark.parametrize("seed", range(4))
def test_ill_suited_data_never_give_nan(seed):
    X, y = correlated(seed)
    found = amp(X, y, noise_variance=float(np.mean(X**2)), center_variance=1.0, learn=ALL)
    assert found.status in set(AmpStatus)
    for array in (found.center, found.center_std, found.posterior, found.cavity_fields):
        assert np.isfinite(array).all()


def test_reads_are_counted_and_single_precision_agrees():
    data = draw(1.0, 50, 500, seed=0)
    rows = Rows.of(data.X, signs=data.y)
    before = rows.n_reads
    found = amp(rows, contamination=0.7, noise_variance=0.1)
    assert found.n_reads == rows.n_reads - before == len(found.to_frame())
    single = amp(data.X.astype(np.float32), data.y, contamination=0.7, noise_variance=0.1)
    np.testing.assert_allclose(single.center, found.center, atol=1e-5)
    assert found.to_dict()["status"] == "CONVERGED"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contamination": 1.0}, "contamination"),
        ({"contamination": "half"}, "contamination"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"center_variance": -1.0}, "center_variance"),
        ({"label_noise": 0.7}, "label_noise"),
        ({"center_prior": "cube"}, "center_prior"),
        ({"learn": "gamma"}, "learn"),
        ({"learn": ("label_noise",)}, "label_noise to begin from"),
        ({"learn": ("center_variance",), "center_prior": "sphere"}, "radius"),
        ({"init": "middle"}, "init"),
        ({"init": np.full(5, np.nan)}, "init"),
        ({"init": np.full(5, 1e200)}, "init"),
        ({"init": np.ones((2, 5))}, "init"),
        ({"init": {}}, "init"),
        ({"rng": 0.5}, "rng"),
        ({"damping": 1.0}, "damping"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"selection": (0, 1)}, "SelectionPrior"),
    ],
)
def test_bad_parameters_are_named(change, message):
    data = draw(0.0, 5, 20, seed=0)
    with pytest.raises(ParameterError, match=message):
        amp(data.X, data.y, **({"noise_variance": 0.1} | change))


def test_priors_and_rows_are_checked():
    with pytest.raises(ParameterError, match="sum 1"):
        SelectionPrior((0.0, 1.0), (0.5, 0.6))
    with pytest.raises(ParameterError, match="other than 0"):
        SelectionPrior((0.0,), (1.0,))
    with pytest.raises(DataError, match="own labels"):
        amp(Rows.of(np.eye(3)), [1, 1, 1], noise_variance=0.1)
    with pytest.raises(DataError, match="every row"):
        amp(np.zeros((5, 3)), noise_variance=0.1, learn="noise_variance")
    assert not amp(np.zeros((5, 3)), noise_variance=0.1).center.any()
    with pytest.raises(DataError, match="NaN"):
        amp([[np.nan, 1.0]], noise_variance=0.1)


def test_tilted_prior_has_the_moments_of_its_density():
    prior = SelectionPrior((-1.0, 0.0, 2.0), (0.2, 0.5, 0.3))
    got = prior.moments_with_reaction(0.7, np.linspace(-8, 8, 9), reaction=3.0)
    np.testing.assert_allclose(got.field + 3.0 * got.mean, np.linspace(-8, 8, 9), atol=1e-9)
    weights = np.array(prior.weights) * np.exp(
        got.field[:, None] * np.array(prior.values) - 0.35 * np.square(prior.values)
    )
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(got.weights, weights, rtol=1e-9)
    total, _ = integrate.quad(lambda t: float(prior.moments(0.7, np.array([t])).mean[0]), 0.0, 1.0)
    density = np.array(prior.weights) * np.exp(-0.35 * np.square(prior.values))
    logs = [np.log((density * np.exp(t * np.array(prior.values))).sum()) for t in (0.0, 1.0)]
    assert total == pytest.approx(logs[1] - logs[0], rel=1e-9)
