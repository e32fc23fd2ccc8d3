import math

import numpy as np
import pytest
from scipy.integrate import simpson

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.numerics.status import Status
from outlearn.theory.bayes import BayesOptimal
from outlearn.theory.gibbs import Gibbs, inner_average
from outlearn.theory.soft import SoftSelection
from outlearn.theory.solve import branches, solve
from outlearn.theory.system import Points

WRONG = Ensemble(eta=2.0, gamma=10.0, gamma_tilde=7.0, eta_tilde=1.0)


@pytest.mark.parametrize("beta", [1.0, 1.5, 3.0, 3.7, 40.0])
@pytest.mark.parametrize("spread", [0.05, 0.8, 3.0])
@pytest.mark.parametrize("field", [-9.0, -1.0, 0.3, 6.0])
def test_inner_average_is_the_integral(beta, spread, field):
    def log_integrand(y):
        return beta * np.logaddexp(0.0, field + spread * y) - 0.5 * y * y

    grid = np.linspace(-9.5, 9.5 + beta * spread, 100_001)
    top = log_integrand(grid).max()

    def moment(power):
        return simpson(grid**power * np.exp(log_integrand(grid) - top), x=grid)

    zeroth, first, second = moment(0), moment(1), moment(2)
    found = inner_average(np.array([field]), spread, beta, 0.0, False)[:, 0]
    assert found[0] == pytest.approx(top + math.log(zeroth / math.sqrt(2 * math.pi)), rel=1e-9, abs=1e-9)
    # G' = <y>/s and G'' = (var(y) - 1)/s², from integration by parts
    mean = first / zeroth
    assert found[1] == pytest.approx(mean / spread, rel=1e-6, abs=1e-8)
    assert found[2] == pytest.approx((second / zeroth - mean**2 - 1) / spread**2, rel=2e-4, abs=2e-5)
    moved = inner_average(np.array([field]), spread, beta, 0.5, False)[:, 0]
    np.testing.assert_allclose(moved, found, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("beta", "spread"), [(2.0, 1.0), (20.0, 0.4), (300.0, 0.2), (2.5, 30.0)])
def test_whole_and_real_temperatures_meet(beta, spread):
    fields = np.linspace(-12.0, 6.0, 7) - 0.5 * beta * spread**2
    near = [inner_average(fields, spread, beta + e, 0.0, False) for e in (-1e-7, 1e-7)]
    here = inner_average(fields, spread, beta, 0.0, False)
    np.testing.assert_allclose(here, (near[0] + near[1]) / 2, rtol=1e-7, atol=1e-6)
    h = 1e-5
    up, down = (inner_average(fields + e, spread, beta, 0.0, False) for e in (h, -h))
    np.testing.assert_allclose(
        (up - down)[:3] / (2 * h), here[1:], rtol=1e-6, atol=1e-8 + 1e-10 * np.abs(here).max()
    )


@pytest.mark.parametrize(("alpha", "eta"), [(1.0, 0.0), (20.0, 4.0), (85.0, 5.0)])
def test_nishimori_every_branch_is_the_bayes_optimal_one(alpha, eta):
    e = Ensemble(eta, 10.0)
    mine, bayes = branches(Gibbs(), e, alpha), branches(BayesOptimal(), e, alpha)
    assert len(mine) == len(bayes)
    for a, b in zip(mine, bayes, strict=True):
        assert pytest.approx(1.0, abs=1e-10) == a.Q
        assert pytest.approx(b.R, abs=1e-10) == a.R
        assert a.q == pytest.approx(b.R, abs=1e-10)
        assert a.free_energy == pytest.approx(b.free_energy, abs=1e-11)
        assert a.at_eigenvalue == pytest.approx(b.at_eigenvalue, rel=1e-7)
        details = dict(a.details)
        assert details["mean_angle"] == pytest.approx(b.angle, abs=1e-10)
        assert a.angle == pytest.approx(math.acos(b.R) / math.pi, abs=1e-10)  # one sample: cosine q, not √q
        assert details["mean_distance"] == pytest.approx(b.distance, abs=1e-10)
        assert a.distance == pytest.approx(2 * b.distance, abs=1e-10)


@pytest.mark.parametrize("beta", [1.0, 1.6, 7.0, 90.0])
@pytest.mark.parametrize("ensemble", [Ensemble(0.0, 10.0), WRONG])
def test_solution_is_stationary(beta, ensemble):
    s = solve(Gibbs(beta), ensemble, 3.0)
    system, points = Gibbs(beta).system(), Points.of(ensemble, 3.0)

    def f(R, q, Q):
        return system.free_energy(points, np.log([[R, q - R * R, Q - q]]))[0]

    at = np.array([s.R, s.q, s.Q])
    for i in range(3):
        h = 1e-5 * (s.Q - s.q) * np.eye(3)[i]
        slope = (f(*(at + h)) - f(*(at - h))) / (2 * h[i])
        assert slope == pytest.approx(0.0, abs=3e-6)
        moved = at + np.array([-0.05, -0.02, 0.3]) * (s.Q - s.q)
        assert abs(f(*(moved + h)) - f(*(moved - h))) / (2 * h[i]) > 1e-3
    assert s.status.ok
    assert s.residual < 1e-10
    assert s.quadrature_error < 1e-12


def test_jacobian_is_exact():
    h = 1e-6
    for beta in (1.0, 2.3, 30.0, 150.0):
        system, points = Gibbs(beta).system(), Points.of(WRONG, 3.0)
        v = np.array([[-0.5, -1.2, -1.0 - math.log(beta)]])
        numerical = np.stack(
            [
                (system.residual(points, v + h * u) - system.residual(points, v - h * u))[0] / (2 * h)
                for u in np.eye(3)
            ],
            1,
        )
        np.testing.assert_allclose(system.jacobian(points, v)[0], numerical, atol=1e-8)


@pytest.mark.parametrize(("alpha", "ensemble"), [(1.0, Ensemble(0.0, 10.0)), (5.0, WRONG)])
def test_zero_temperature_is_soft_selection_at_rate_one_over_beta(alpha, ensemble):
    cold = solve(SoftSelection(), ensemble, alpha)
    first, second = (solve(Gibbs(beta), ensemble, alpha) for beta in (300.0, 3000.0))
    for name in ("R", "Q", "z", "at_eigenvalue"):
        far, near = (getattr(s, name) - getattr(cold, name) for s in (first, second))
        assert abs(near) < 0.01
        assert far / near == pytest.approx(10.0, rel=0.02), name
    # the entropy -ln(Q - q)/(2β) leaves ln β/(2β) behind, the rest goes as 1/β
    far, near = (
        s.free_energy - cold.free_energy - math.log(beta) / (2 * beta)
        for s, beta in ((first, 300.0), (second, 3000.0))
    )
    assert far / near == pytest.approx(10.0, rel=0.02)


def test_beyond_the_transition_the_replicon_number_grows_with_beta():
    # the zero-temperature prox jumps there, where the number is infinite
    e = Ensemble(4.0, 10.0)
    assert solve(SoftSelection(), e, 20.0).at_eigenvalue == math.inf
    numbers = [solve(Gibbs(beta), e, 20.0, branch="uninformative").at_eigenvalue for beta in (30.0, 300.0)]
    assert 1.0 < numbers[0] < 0.2 * numbers[1]


def test_without_outliers_it_is_the_gaussian_posterior():
    # precision 1 + αγ per coordinate: mean αγ/(1+αγ) B + noise, sample variance 1/(β(1+αγ))
    s = solve(Gibbs(3.0), Ensemble(-math.inf, 10.0), 2.0)
    assert pytest.approx(20 / 21) == s.R
    assert s.q == pytest.approx((20 / 21) ** 2 + 20 / 21**2)
    assert s.Q - s.q == pytest.approx(1 / (3 * 21))


@pytest.mark.parametrize("beta", [1.0, 2.5, 50.0])
@pytest.mark.parametrize("ensemble", [Ensemble(1.0, 10.0), Ensemble(0.0, 10.0, 8.0, 0.5)])
def test_limit_is_what_many_examples_give(beta, ensemble):
    limit, s = Gibbs(beta).limit(ensemble), solve(Gibbs(beta), ensemble, 1e5)
    assert pytest.approx(limit.R_inf, rel=1e-4) == s.R
    assert 1e5 * (s.Q - limit.R_inf**2 - 2 * limit.R_inf * (s.R - limit.R_inf)) == pytest.approx(
        limit.c, rel=1e-3
    )
    assert s.free_energy / 1e5 == pytest.approx(limit.energy, rel=1e-3)


@pytest.mark.parametrize("beta", [1.0, 30.0])
@pytest.mark.parametrize("alpha", [1e-3, 1e7])
@pytest.mark.parametrize("eta", [-40.0, 0.0, 40.0])
@pytest.mark.parametrize("gamma", [1e-3, 1e4])
def test_extreme_parameters_give_a_number_or_a_status(beta, alpha, eta, gamma):
    s = solve(Gibbs(beta), Ensemble(eta, gamma), alpha, on_failure="return")
    # one corner (hardly any informative example among very many) has no solution that can be told from R = 0
    assert s.status.ok or (beta == 30.0 and eta == 40.0 and s.status is Status.NO_SOLUTION), s
    assert all(math.isfinite(x) for x in (s.R, s.Q, s.q, s.free_energy))
    if beta == 1.0:
        assert pytest.approx(solve(BayesOptimal(), Ensemble(eta, gamma), alpha).R, rel=1e-6) == s.R


@pytest.mark.parametrize("beta", [0.5, 0.0, -1.0, math.inf, math.nan, True, "1"])
def test_bad_temperatures_are_named(beta):
    with pytest.raises(ParameterError, match="beta"):
        Gibbs(beta)
