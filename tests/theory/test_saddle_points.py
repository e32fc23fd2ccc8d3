"""Soft and hard selection and the Hebb rule: numbers, stationarity, limits, extremes."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlearn import theory
from outlearn.exceptions import ConvergenceError, ParameterError
from outlearn.model import Ensemble
from outlearn.numerics import Status
from outlearn.theory.bayes_averages import (
    SIGMOID,
    SIGMOID_SQUARE,
    SOFTPLUS,
    log_average,
    log_average_wide,
)
from outlearn.theory.printed import printed_hard_energy, printed_integrals
from outlearn.theory.search import search
from outlearn.theory.selection import HardSystem
from outlearn.theory.system import Points

SOFT, HARD, HEBB = theory.SoftSelection(), theory.HardSelection(), theory.Hebb()
PRINTED_SOFT, PRINTED_HARD = theory.SoftSelection("printed"), theory.HardSelection("printed")
EVERYONE = [SOFT, PRINTED_SOFT, HARD, PRINTED_HARD, HEBB]


@pytest.mark.parametrize(
    ("learner", "alpha", "eta", "numbers"),
    [
        (SOFT, 1, 0, {"R": 0.79274, "Q": 0.77260, "z": 0.16794, "free_energy": -2.66761, "angle": 0.14218}),
        (
            PRINTED_SOFT,
            1,
            0,
            {"R": 0.79204, "Q": 0.78571, "z": 0.16924, "free_energy": -2.67842, "angle": 0.14821},
        ),
        (SOFT, 2, 0, {"R": 0.88403, "Q": 0.86864, "z": 0.09477, "free_energy": -5.30061, "angle": 0.10258}),
        (SOFT, 20, 0, {"R": 0.98694, "Q": 0.98471, "z": 0.01075, "free_energy": -52.87239, "angle": 0.03317}),
        (HARD, 5, 0, {"R": 0.9779, "Q": 0.9997, "z": 0.0418, "free_energy": -11.2814, "angle": 0.0668}),
        (HARD, 20, 2, {"R": 1.0310, "Q": 1.1256, "z": 0.0546, "free_energy": -6.6284, "angle": 0.0758}),
        (HARD, 20, 1, {"Q": 1.073}),
    ],
)
def test_reference_numbers(learner, alpha, eta, numbers):
    s = theory.solve(learner, Ensemble(eta=eta, gamma=10.0), alpha)
    assert s.status.ok
    assert s.residual < 1e-10
    for name, value in numbers.items():
        digits = len(str(value).split(".")[1])
        assert getattr(s, name) == pytest.approx(value, abs=0.51 * 10**-digits), name


def test_printed_hard_selection_halves_the_noise():
    # self-consistent solution of the printed functional; with the exact R_hat, Q_hat and z it would be 1.0607
    s = theory.solve(PRINTED_HARD, Ensemble(eta=1.0, gamma=10.0), 20)
    assert pytest.approx(1.06221, abs=1e-5) == s.Q
    exact = theory.solve(HARD, Ensemble(eta=1.0, gamma=10.0), 20)
    assert pytest.approx(1.061, abs=0.001) == exact.R**2 + 0.5 * (exact.Q - exact.R**2)


@pytest.mark.parametrize("learner", EVERYONE, ids=repr)
@pytest.mark.parametrize("ensemble", [Ensemble(0.7, 10.0), Ensemble(1.5, 4.0, 3.0, 1.0)], ids=repr)
def test_every_solution_is_stationary(learner, ensemble):
    """Numerical derivatives of the free energy in each unknown vanish, on every branch."""
    system = learner.system()
    points = Points.of(ensemble, 3.0)
    found = search(system, points)
    assert len(found.v)
    h = 1e-4
    for v in found.v:
        f = float(system.free_energy(points, v[None])[0])
        for i in range(len(v)):
            step = np.zeros_like(v)
            step[i] = h
            up, down = (float(system.free_energy(points, (v + s)[None])[0]) for s in (step, -step))
            curvature = abs(up + down - 2 * f) / h**2
            assert abs(up - down) / (2 * h) < 1e-7 * (1 + abs(f) + curvature), (i, v)


@pytest.mark.parametrize("learner", EVERYONE, ids=repr)
def test_jacobian_is_the_derivative_of_the_residual(learner):
    rng = np.random.default_rng(3)
    system = learner.system()
    n, checked = len(system.names), 0
    for _ in range(60):
        e = Ensemble(
            rng.uniform(-2, 4), 10 ** rng.uniform(-0.5, 1.5), 10 ** rng.uniform(-0.5, 1.5), rng.uniform(-2, 4)
        )
        points = Points.of(e, 10 ** rng.uniform(-1, 2))
        # response small enough for the printed equations half of the time
        v = np.log(rng.uniform([0.05, 0.02, 0.005, 0.5], [1.2, 0.6, 0.5, 5.0])[:n])[None]
        if system.undefined(points, v + 1e-3)[0] or not np.isfinite(system.residual(points, v)).all():
            continue
        checked += 1
        jacobian = system.jacobian(points, v)[0]
        for i in range(n):
            step = np.zeros(n)
            step[i] = 1e-5
            difference = (system.residual(points, v + step) - system.residual(points, v - step))[0] / 2e-5
            np.testing.assert_allclose(jacobian[:, i], difference, atol=3e-6 * np.abs(jacobian).max())
    assert checked >= 20


def test_the_jumping_prox_has_boundary_terms():
    """b well above 4, the jump amid the Gaussian: without them the Jacobian is off by order one."""
    system = SOFT.system()
    points = Points.of(Ensemble(1.0, 10.0), 2.0)
    v = np.log([[0.3, 0.5, 0.9]])
    jacobian = system.jacobian(points, v)[0]
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-5
        difference = (system.residual(points, v + step) - system.residual(points, v - step))[0] / 2e-5
        np.testing.assert_allclose(jacobian[:, i], difference, rtol=1e-6, atol=1e-7)
    assert system.at_eigenvalue(points, v)[0] == math.inf


def test_printed_kernels_are_the_printed_integrals():
    s = theory.solve(PRINTED_SOFT, Ensemble(0.5, 10.0, 8.0, 0.7), 3.0)
    from outlearn.numerics import gaussian_average

    e, g, gamma = s.ensemble, 8.0, 10.0
    b = g**2 * s.z / gamma

    def average(name, V, power=0):
        def integrand(x):
            a = -g * s.Q / 2 - e.eta_tilde + g * V * s.R + g * np.sqrt(s.Q / gamma) * x
            return printed_integrals(a, b)[name] * x**power

        return float(gaussian_average(integrand).value)

    p = {0: e.outlier_fraction, 1: e.informative_fraction}
    alpha, root = s.alpha, np.sqrt(gamma * s.Q)
    d_R = s.R / s.z - alpha * p[1] * (average("I_6", 1) + b / 2 * average("I_2", 1)) * g
    d_z = (s.Q - s.R**2) / (2 * s.z**2) - alpha * g**2 / (2 * gamma) * sum(
        p[V] * average("I_4", V) for V in p
    )
    d_Q = (
        -1 / (2 * s.z)
        + 0.5
        + alpha
        * sum(
            p[V]
            * g
            / 2
            * (
                average("I_6", V)
                + b / 2 * average("I_2", V)
                - (average("I_6", V, 1) + b / 2 * average("I_2", V, 1)) / root
            )
            for V in p
        )
    )
    assert abs(d_R) < 1e-8
    assert abs(d_z) < 1e-7
    assert abs(d_Q) < 1e-8


def test_printed_hard_energy_is_freehard():
    for alpha, eta in ((20.0, 1.0), (5.0, 0.0)):
        s = theory.solve(PRINTED_HARD, Ensemble(eta, 10.0), alpha)
        z_hat = (10.0 / s.z - 10.0 * (10.0 * s.Q_hat + 1.0)) / 100.0
        R_hat = s.R / (10.0 * s.z)
        f = printed_hard_energy(
            eta=eta, gamma=10.0, gamma_tilde=10.0, R_hat=R_hat, Q_hat=s.Q_hat, z_hat=z_hat
        )
        assert f == pytest.approx(s.free_energy, rel=1e-10)


def test_hard_selection_obeys_its_closed_form():
    s = theory.solve(HARD, Ensemble(1.0, 10.0, 8.0, 0.5), 6.0)
    expected = 0.5 * s.Q_hat + 0.5 * math.log(8.0 * s.Q_hat + 1) - (8.0 * s.Q_hat + 1) * s.Q / 2
    assert s.free_energy == pytest.approx(expected, rel=1e-11)
    assert pytest.approx(s.R**2 + s.z**2 * 6.4 * s.Q_hat, rel=1e-11) == s.Q


@pytest.mark.parametrize("learner", [SOFT, PRINTED_SOFT, HARD, PRINTED_HARD], ids=repr)
def test_without_outliers_everything_is_hebb(learner):
    hebb = theory.solve(HEBB, Ensemble(-math.inf, 10.0), 3.0)
    for eta in (-math.inf, -60.0):
        s = theory.solve(learner, Ensemble(eta, 10.0), 3.0)
        assert (s.R, s.z) == pytest.approx((hebb.R, hebb.z), rel=1e-9)
        noise = 0.5 if learner is PRINTED_HARD else 1.0  # Q_hat/2 again
        assert pytest.approx(noise * (hebb.Q - hebb.R**2), rel=1e-9) == s.Q - s.R**2


def test_small_b_printed_is_exact():
    distances = []
    for alpha in (1e2, 1e3, 1e4):
        exact, printed = (theory.solve(x, Ensemble(0.0, 10.0), alpha) for x in (SOFT, PRINTED_SOFT))
        distances.append(abs(exact.Q - printed.Q))
        assert exact.z * 10 < 30 / alpha
    assert distances[0] < 2e-4
    # the envelope's next order is b²: the difference falls at least with the square
    assert distances[1] < 2e-2 * distances[0]
    assert distances[2] < 2e-2 * distances[1] + 1e-13


@pytest.mark.parametrize("learner", [SOFT, PRINTED_SOFT, HARD, PRINTED_HARD, HEBB], ids=repr)
@pytest.mark.parametrize("ensemble", [Ensemble(1.0, 10.0), Ensemble(1.0, 4.0, 6.0, 0.5)], ids=repr)
def test_large_alpha_is_the_limit(learner, ensemble):
    limit = theory.limit(learner, ensemble)
    assert limit.status.ok
    alpha = 1e6
    s = theory.solve(learner, ensemble, alpha)
    assert pytest.approx(limit.R_inf, rel=1e-4) == s.R
    assert (s.Q - s.R**2) * alpha == pytest.approx(limit.c, rel=1e-3)
    assert s.angle == pytest.approx(limit.angle(alpha), rel=1e-3)
    assert s.free_energy / alpha == pytest.approx(limit.energy, rel=1e-3)


def test_matched_soft_limit_is_explicit():
    limit = theory.limit(SOFT, Ensemble(2.0, 5.0))
    assert limit.R_inf == pytest.approx(1.0, abs=1e-12)
    from scipy.special import expit

    from outlearn.numerics import gaussian_average

    mean = gaussian_average(lambda x: expit(-2.0 + 2.5 + np.sqrt(5.0) * x)).value
    assert limit.c == pytest.approx(1 / (5.0 * expit(-2.0) * mean), rel=1e-10)


def test_a_printed_solution_beyond_b_4_has_a_status():
    with pytest.raises(ConvergenceError, match=r"No solution|do not exist") as caught:
        theory.solve(PRINTED_SOFT, Ensemble(6.0, 10.0), 20)
    partial = caught.value.partial
    assert partial.status in (Status.NO_SOLUTION, Status.NOT_DEFINED)
    returned = theory.solve(PRINTED_SOFT, Ensemble(6.0, 10.0), 20, on_failure="return")
    assert not returned.status.ok
    assert not math.isnan(returned.residual)


def test_trivial_solution_of_hard_selection():
    system = HardSystem()
    e = Ensemble(1.0, 10.0, 12.0, 1.0)
    onset = float(system.onset(Points.of(e, 1.0))[0])
    assert onset == pytest.approx(-6.0 + 144 / 20)
    above = theory.branches(HARD, Ensemble(1.0, 10.0, 12.0, onset + 0.01), 1.0)
    below = theory.branches(HARD, Ensemble(1.0, 10.0, 12.0, onset - 0.01), 1.0)
    assert "trivial" in [s.branch for s in above]
    assert "trivial" not in [s.branch for s in below]
    trivial = next(s for s in above if s.branch == "trivial")
    assert (trivial.R, trivial.Q, trivial.Q_hat, trivial.free_energy) == (0, 0, 0, 0)
    assert trivial.status is Status.EXPLICIT
    assert trivial.angle == 0.5
    assert trivial.test_error == 0.5


def test_a_result_tells_everything_and_is_frozen():
    s = theory.solve(SOFT, Ensemble(0.0, 10.0), 1)
    table = s.to_frame()
    for name in (
        "R",
        "Q",
        "z",
        "free_energy",
        "angle",
        "distance",
        "test_error",
        "stable",
        "status",
        "alpha",
    ):
        assert name in table
    assert s.stream_error == pytest.approx(0.5 * s.test_error + 0.25)
    assert s.stable
    assert s.at_eigenvalue < 1
    assert s.quadrature_error < 1e-9
    assert "<table>" in s._repr_html_()
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.R = 1.0


@pytest.mark.parametrize("alpha", [0, -1, math.inf, math.nan, "two", [1, 2], True])
def test_bad_alpha_is_refused(alpha):
    with pytest.raises(ParameterError, match="alpha"):
        theory.solve(SOFT, Ensemble(0.0, 10.0), alpha)


def test_bad_names_are_refused():
    with pytest.raises(ParameterError, match="equations"):
        theory.SoftSelection(equations="printet")
    with pytest.raises(ParameterError, match="equations"):
        theory.HardSelection(equations="")
    with pytest.raises(ParameterError, match="branch"):
        theory.solve(SOFT, Ensemble(0.0, 10.0), 1, branch="best")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(EVERYONE),
    st.floats(-3, 4),
    st.one_of(st.floats(-40, 40), st.just(-math.inf)),
    st.floats(-3, 7),
)
def test_extreme_parameters_give_a_number_or_a_status(learner, log_gamma, eta, log_alpha):
    s = theory.solve(learner, Ensemble(eta, 10**log_gamma), 10**log_alpha, on_failure="return")
    numbers = (s.R, s.Q, s.free_energy, s.angle, s.distance, s.test_error, s.residual, s.quadrature_error)
    assert not any(math.isnan(x) for x in numbers), s
    assert not math.isnan(s.at_eigenvalue), s
    if s.status.ok:
        assert s.residual < 1e-10
        assert s.quadrature_error < 1e-7
        assert s.Q >= s.R**2 * (1 - 1e-12)
    else:
        assert str(s.status)
    if learner in (SOFT, HARD, PRINTED_HARD, HEBB):  # the printed soft equations may have no solution
        assert s.status in (
            Status.CONVERGED,
            Status.EXPLICIT,
            Status.QUADRATURE_LIMITED,
            Status.NO_SOLUTION,
        ), s


def test_every_branch_of_the_printed_equations_is_found_below_b_of_four():
    e = Ensemble(eta=5.2938580, gamma=13.658573, gamma_tilde=26.839135, eta_tilde=5.8253794)
    found = theory.branches(theory.SoftSelection("printed"), e, 337.11197)
    overlaps = sorted(s.R for s in found if s.R > 1e-3)
    assert overlaps[:3] == pytest.approx([0.0146544, 0.0555529, 0.1871782], rel=1e-4)
    assert all(s.residual < 1e-10 and s.z * e.gamma_tilde**2 / e.gamma < 4.0 for s in found)


@pytest.mark.parametrize(
    ("eta", "gamma"), [(37.9, 0.12), (-40.0, 1e-3), (40.0, 1e4), (25.0, 1.0), (40.0, 1e-3), (0.0, 1e4)]
)
def test_a_matched_limit_is_as_precise_where_all_averages_vanish(eta, gamma):
    soft, bound = (theory.limit(learner, Ensemble(eta, gamma)) for learner in (SOFT, theory.BayesOptimal()))
    assert soft.status.ok
    assert soft.R_inf == pytest.approx(1.0, abs=1e-10)
    assert soft.c == pytest.approx(bound.c, rel=1e-9)
    assert theory.limit(HARD, Ensemble(eta, gamma)).status.ok


def test_a_limit_that_next_to_nothing_is_learnt_in():
    trusting = theory.limit(SOFT, Ensemble(24.9, 19.4, 7.8, -4.6))
    assert trusting.status.ok
    assert 0.0 < trusting.R_inf < 1e-10
    fitting_noise = theory.limit(SOFT, Ensemble(34.46, 0.0022, 0.0028, 37.4))
    assert fitting_noise.status.ok
    assert fitting_noise.R_inf > 50


@pytest.mark.parametrize("kind", [SIGMOID, SIGMOID_SQUARE, SOFTPLUS])
@pytest.mark.parametrize("spread", [5.0, 300.0])
def test_both_rules_give_the_same_logistic_averages(kind, spread):
    for mean in (-3.0 * spread**2, -(spread**2) - 40.0, -0.5 * spread**2, -4.1 * spread, 0.0, 9.0 * spread):
        narrow, wide = log_average(kind, mean, spread**2, 0.0), log_average_wide(kind, mean, spread)
        assert wide == pytest.approx(narrow, rel=1e-12, abs=1e-12)


def test_a_limit_at_any_spread_of_the_field():
    far = Ensemble(2.0, 1e-3, gamma_tilde=1e4, eta_tilde=20.0)
    limit = theory.limit(SOFT, far)
    assert limit.status.ok
    assert pytest.approx(limit.R_inf, rel=1e-2) == theory.solve(SOFT, far, 1e9).R
