import itertools
import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import quad
from scipy.special import expit, ndtr

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.theory import bayes_roots
from outlearn.theory.bayes import BayesOptimal, bound, hard_phase, hard_phase_onset, thresholds
from outlearn.theory.bayes_averages import SIGMOID, SIGMOID_SLOPE, SOFTPLUS, log_average
from outlearn.theory.solve import solve
from outlearn.theory.system import Points
from outlearn.theory.transitions import transitions

FUNCTIONS = {
    SIGMOID: expit,
    SIGMOID_SLOPE: lambda s: expit(s) * expit(-s) ** 2,
    SOFTPLUS: lambda s: np.logaddexp(0.0, s),
}
GRID = [
    (alpha, eta, gamma)
    for alpha in (1e-3, 1.0, 20.0, 80.0, 500.0, 1e7)
    for eta in (-40.0, -3.0, 0.0, 4.0, 6.0, 40.0)
    for gamma in (1e-3, 1.0, 10.0, 200.0, 1e4)
]


def independent_average(kind, mean, variance):
    """Adaptive quadrature in pieces around the kink, for comparison only."""
    spread = math.sqrt(variance)
    kink = min(max(-mean / spread, -30.0), 30.0)
    edges = np.unique(
        np.clip([*np.linspace(-13, 13, 27), *(kink + np.linspace(-40, 40, 17) / spread)], -35, 35)
    )
    total = 0.0
    for a, b in itertools.pairwise(edges):
        total += quad(
            lambda x: math.exp(-x * x / 2) * FUNCTIONS[kind](mean + spread * x), a, b, epsabs=0, epsrel=1e-12
        )[0]
    return total / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("kind", [SIGMOID, SIGMOID_SLOPE, SOFTPLUS])
@pytest.mark.parametrize(
    ("mean", "variance"), [(-40.0, 50.0), (-5.0, 3.0), (0.3, 0.01), (3.0, 10.0), (-1.0, 1e4)]
)
def test_averages_agree_with_adaptive_quadrature(kind, mean, variance):
    value = log_average(kind, mean, variance, 0.0)
    assert value == pytest.approx(math.log(independent_average(kind, mean, variance)), abs=1e-11)
    assert log_average(kind, mean, variance, 0.5) == pytest.approx(value, abs=1e-13, rel=1e-13)


@pytest.mark.parametrize(("alpha", "eta", "phi"), [(1.0, 0.0, 0.1411), (20.0, 4.0, 0.2369)])
def test_published_points(alpha, eta, phi):
    (t,) = bayes_roots.roots(alpha, eta, 10.0)
    assert math.acos(math.sqrt(expit(t))) / math.pi == pytest.approx(phi, abs=6e-5)


def test_root_solves_the_equation_written_out():
    x, w = hermegauss(120)
    w = w / w.sum()
    for alpha, eta, gamma in [(1.0, 0.0, 10.0), (20.0, 4.0, 10.0), (90.0, 5.0, 10.0), (3.0, 1.0, 2.0)]:
        for t in bayes_roots.roots(alpha, eta, gamma):
            q = expit(t)
            right = alpha * gamma * expit(-eta) * (w @ expit(-eta + gamma * q / 2 + math.sqrt(gamma * q) * x))
            assert q / (1 - q) == pytest.approx(right, rel=1e-8)


@pytest.mark.parametrize(("alpha", "eta", "gamma"), GRID)
def test_every_root_is_found_even_at_extreme_parameters(alpha, eta, gamma):
    ts = bayes_roots.roots(alpha, eta, gamma)
    top = math.log(alpha * gamma) - np.logaddexp(0, eta)
    scan = np.linspace(top - np.logaddexp(0, eta) - 1e-6, top + 1e-6, 400)
    gap = [bayes_roots.log_alpha_of(t, eta, gamma, 0.0) - math.log(alpha) for t in scan]
    changes = int((np.diff(np.sign(gap)) != 0).sum())
    assert ts.size == changes
    assert ts.size in (1, 3)
    assert all(
        abs(bayes_roots.log_alpha_of(t, eta, gamma, 0.0) - math.log(alpha)) < 1e-11 * (1 + abs(t)) for t in ts
    )
    assert all(math.isfinite(bayes_roots.free_energy(t, alpha, eta, gamma)) for t in ts)


@pytest.mark.parametrize(
    ("alpha", "eta", "gamma"), [(1.0, 0.0, 10.0), (20.0, 4.0, 10.0), (85.0, 5.0, 10.0), (0.3, -2.0, 40.0)]
)
def test_free_energy_is_stationary_at_every_root_and_nowhere_else(alpha, eta, gamma):
    def slope(t):
        h = 1e-5
        up, down = (bayes_roots.free_energy(t + s, alpha, eta, gamma) for s in (h, -h))
        return (up - down) / (2 * h * expit(t) * expit(-t))  # df/dq

    for t in bayes_roots.roots(alpha, eta, gamma):
        assert slope(t) == pytest.approx(0.0, abs=2e-7)
        for other in (t - 0.05, t + 0.05):
            q = expit(other)
            exact = 0.5 * (
                q / (1 - q)
                - math.exp(
                    math.log(alpha * gamma)
                    - np.logaddexp(0, eta)
                    + log_average(SIGMOID, gamma * q / 2 - eta, gamma * q, 0.0)
                )
            )
            assert slope(other) == pytest.approx(exact, rel=1e-4)
            assert abs(slope(other)) > 1e-5


def test_area_and_difference_of_free_energies_agree():
    a, b, c = bayes_roots.roots(85.0, 5.0, 10.0)
    for low, high in [(a, c), (a, b), (b, c)]:
        difference = bayes_roots.free_energy(high, 85.0, 5.0, 10.0) - bayes_roots.free_energy(
            low, 85.0, 5.0, 10.0
        )
        assert bayes_roots.free_energy_gap(low, high, 85.0, 5.0, 10.0) == pytest.approx(difference, abs=1e-12)


def test_thresholds_separate_one_root_from_three_and_balance_the_free_energies():
    found = thresholds(5.0, 10.0)
    assert found.appears < found.information_theoretic < found.algorithmic
    for alpha, count in [
        (found.appears * (1 - 1e-6), 1),
        (found.appears * (1 + 1e-6), 3),
        (found.algorithmic * (1 - 1e-6), 3),
        (found.algorithmic * (1 + 1e-6), 1),
    ]:
        assert bayes_roots.roots(alpha, 5.0, 10.0).size == count
    alpha = found.information_theoretic
    ts = bayes_roots.roots(alpha, 5.0, 10.0)
    f = [bayes_roots.free_energy(t, alpha, 5.0, 10.0) for t in ts]
    assert f[0] == pytest.approx(f[2], abs=1e-11)
    assert f[1] > f[0]
    below, above = (
        [bayes_roots.free_energy(t, x, 5.0, 10.0) for t in bayes_roots.roots(x, 5.0, 10.0)]
        for x in (0.99 * alpha, 1.01 * alpha)
    )
    assert below[0] < below[2]
    assert above[2] < above[0]


@pytest.mark.parametrize("gamma", [4.5, 10.0, 100.0])
def test_hard_phase_begins_at_its_onset(gamma):
    onset = hard_phase_onset(gamma)
    assert thresholds(onset - 1e-3, gamma) is None
    just = thresholds(onset + 1e-3, gamma)
    assert just is not None
    assert just.algorithmic / just.appears - 1 < 1e-3
    assert thresholds(onset + 2.0, gamma).algorithmic > 1.01 * thresholds(onset + 2.0, gamma).appears


def test_no_hard_phase_for_clusters_that_overlap_too_much():
    assert hard_phase_onset(4.0) == math.inf
    assert all(thresholds(eta, 4.0) is None for eta in (0.0, 5.0, 20.0, 40.0))
    # the bound q(1-q)γ >= 1 gives the spinodal of very many outliers
    far = thresholds(40.0, 10.0)
    assert far.q_algorithmic == pytest.approx(0.5 * (1 - math.sqrt(1 - 4 / 10.0)), rel=1e-9)


def test_onset_tends_to_the_limit_of_separated_clusters():
    limit = hard_phase_onset(math.inf)
    assert limit == pytest.approx(3.142406, abs=1e-6)
    assert 10 < (hard_phase_onset(1e3) - limit) / (hard_phase_onset(1e4) - limit) < 10.2  # 1/γ


def test_diagram_equals_single_points():
    alphas, etas = np.array([5.0, 60.0, 85.0, 120.0]), np.array([0.0, 5.0])
    d = bound(alphas, etas, 10.0)
    assert d["n_roots"].tolist() == [[1, 1, 1, 1], [1, 1, 3, 1]]
    for i, eta in enumerate(etas):
        for j, alpha in enumerate(alphas):
            ts = bayes_roots.roots(alpha, eta, 10.0)
            best = min(ts, key=lambda t: bayes_roots.free_energy(t, alpha, eta, 10.0))
            assert d["optimal"][i, j] == pytest.approx(expit(best), rel=1e-12)
            assert d["reached"][i, j] == pytest.approx(expit(ts[0]), rel=1e-12)
    table = hard_phase([4.0, 5.0], 10.0)
    assert table["algorithmic"].isna().tolist() == [True, False]


def test_system_is_exact_and_knows_its_stability():
    e = Ensemble(5.0, 10.0)
    system, points = BayesOptimal().system(), Points.of(e, [85.0])
    ts = system.starts(points)[:, 0, 0]
    for t in ts:
        v, h = np.array([[t]]), 1e-6
        residual, jacobian = system.evaluate(points, v)
        assert abs(residual[0, 0]) < 1e-12
        numerical = (system.residual(points, v + h) - system.residual(points, v - h)) / (2 * h)
        assert jacobian[0, 0, 0] == pytest.approx(numerical[0, 0], rel=1e-6)
        assert system.quadrature_error(points, v)[0] < 1e-13
    eigenvalues = [system.at_eigenvalue(points, np.array([[t]]))[0] for t in ts]
    assert [x < 1 for x in eigenvalues] == [True, False, True]


def test_replicon_number_is_the_average_that_defines_it():
    # α γ² (1-q)² < (σ(1-σ))² > over both kinds of examples
    alpha, eta, gamma = 20.0, 4.0, 10.0
    q = expit(bayes_roots.roots(alpha, eta, gamma)[0])
    x, w = hermegauss(150)
    w = w / w.sum()
    square = sum(
        p * (w @ (expit(s) * expit(-s)) ** 2)
        for p, s in [
            (expit(eta), -eta - gamma * q / 2 + math.sqrt(gamma * q) * x),
            (expit(-eta), -eta + gamma * q / 2 + math.sqrt(gamma * q) * x),
        ]
    )
    expected = alpha * gamma**2 * (1 - q) ** 2 * square
    assert bayes_roots.at_eigenvalue_of(math.log(q / (1 - q)), eta, gamma) == pytest.approx(
        expected, rel=1e-7
    )


def test_limit_of_many_examples():
    e = Ensemble(2.0, 10.0)
    limit = BayesOptimal().limit(e)
    t = float(bayes_roots.roots(1e7, 2.0, 10.0)[0])
    assert 1e7 * expit(-t) == pytest.approx(limit.c, rel=1e-5)
    assert bayes_roots.free_energy(t, 1e7, 2.0, 10.0) / 1e7 == pytest.approx(limit.energy, rel=1e-5)


def test_without_outliers_it_is_the_gaussian_mean():
    point = solve(BayesOptimal(), Ensemble(-math.inf, 10.0), 3.0)
    assert point.status.ok
    assert point.stable
    assert point.at_eigenvalue == 0.0
    (t,) = bayes_roots.roots(3.0, -math.inf, 10.0)
    assert expit(t) == pytest.approx(30.0 / 31.0)
    assert bayes_roots.free_energy(t, 3.0, -math.inf, 10.0) == pytest.approx(
        bayes_roots.free_energy(t, 3.0, -60.0, 10.0) + 3.0 * 60.0, abs=1e-9
    )


@pytest.mark.parametrize(
    ("name", "ensemble"),
    [("gamma_tilde", Ensemble(0.0, 10.0, 5.0)), ("eta_tilde", Ensemble(0.0, 10.0, 10.0, 1.0))],
)
def test_a_wrong_belief_is_refused(name, ensemble):
    with pytest.raises(ParameterError, match=f"{name} = .* true parameters"):
        BayesOptimal().system().starts(Points.of(ensemble, 1.0))
    with pytest.raises(ParameterError, match=name):
        BayesOptimal().limit(ensemble)


@pytest.mark.parametrize(
    ("eta", "gamma"), [(math.inf, 10.0), (math.nan, 10.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.inf)]
)
def test_bad_parameters_are_named(eta, gamma):
    with pytest.raises(ParameterError):
        thresholds(eta, gamma)


def test_error_of_the_bound_is_below_hebb_and_falls_with_alpha():
    qs = [expit(bayes_roots.roots(a, 1.0, 5.0)[0]) for a in (0.5, 1.0, 5.0, 50.0)]
    assert np.all(np.diff(qs) > 0)
    for a, q in zip((0.5, 1.0, 5.0, 50.0), qs, strict=True):
        lam = a * 5.0 * expit(-1.0) ** 2
        assert q > lam / (1 + lam)  # cosine² of Hebb's vector
        assert ndtr(-math.sqrt(5.0 * q)) < 0.5


@pytest.mark.parametrize(
    ("over", "start", "between"), [("alpha", 85.0, (20.0, 300.0)), ("eta", 85.0, (3.0, 8.0))]
)
def test_transitions_of_the_engine_are_these_thresholds(over, start, between):
    (found,) = transitions(BayesOptimal(), Ensemble(5.0, 10.0), start, over=over, between=between)
    if over == "alpha":
        line = thresholds(5.0, 10.0)
        for mine, theirs in [
            (line.appears, found.lower_spinodal),
            (line.information_theoretic, found.value),
            (line.algorithmic, found.upper_spinodal),
        ]:
            assert theirs == pytest.approx(mine, rel=1e-9)
    else:  # at fixed α more outliers take the informative solution away
        assert thresholds(found.value, 10.0).information_theoretic == pytest.approx(85.0, rel=1e-8)
        assert thresholds(found.lower_spinodal, 10.0).algorithmic == pytest.approx(85.0, rel=1e-8)
        assert thresholds(found.upper_spinodal, 10.0).appears == pytest.approx(85.0, rel=1e-8)
