import math

import numpy as np
import pytest
from scipy.special import expit

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, sample
from outlearn.theory import bayes_roots
from outlearn.theory.evolution import state_evolution

E = Ensemble(3.0, 10.0)


def message_passing(X, y, eta, gamma, n_iter):
    """Plain AMP written out for the comparison: rank-one, V in {0, 1}, centre N(0, 1)."""
    Y = y[:, None] * X
    P, N = Y.shape
    m, s_m, u_old = np.zeros(N), 1.0, np.zeros(P)
    history = []
    for _ in range(n_iter):
        b = gamma / math.sqrt(N) * (Y @ m) - gamma * s_m * u_old * (len(history) > 0)
        u = expit(-eta + b - 0.5 * gamma * (m @ m) / N)
        s_u = (u * (1 - u)).sum() / N
        B = gamma / math.sqrt(N) * (u @ Y) - gamma * s_u * m
        A = gamma * (u @ u) / N
        m, s_m, u_old = B / (1 + A), 1 / (1 + A), u
        history.append(m)
    return history


def test_message_passing_follows_it_iteration_by_iteration():
    n, alpha, runs = 600, 20, 6
    theory = state_evolution(E, alpha, n_iter=6)
    overlaps = np.empty((runs, 6, 2))
    for k in range(runs):
        data = sample(E, n, alpha * n, rng=100 + k)
        for t, m in enumerate(message_passing(data.X, data.y, E.eta, E.gamma, 6)):
            overlaps[k, t] = m @ data.center / n, m @ m / n
    mean = overlaps.mean(axis=0)
    error = overlaps.std(axis=0, ddof=1) / math.sqrt(runs)
    assert (np.abs(mean - theory.q[1:, None]) < 4 * error + 5 / n).all()
    assert (np.abs(mean - theory.q[:-1, None]) > 4 * error + 5 / n).any()  # one iteration off would be seen


def test_fixed_point_is_the_first_root_on_the_way():
    low, _, high = expit(bayes_roots.roots(85.0, 5.0, 10.0))
    e = Ensemble(5.0, 10.0)
    up = state_evolution(e, 85.0)
    down = state_evolution(e, 85.0, start="informative")
    assert up.q[-1] == pytest.approx(low, rel=1e-9)
    assert up.fixed_point == pytest.approx(low, rel=1e-12)
    assert down.q[-1] == pytest.approx(high, rel=1e-9)
    assert down.fixed_point == pytest.approx(high, rel=1e-12)
    assert state_evolution(e, 85.0, start=0.5).fixed_point == pytest.approx(high)
    assert state_evolution(e, 100.0).fixed_point == pytest.approx(
        expit(bayes_roots.roots(100.0, 5.0, 10.0)[-1])
    )


def test_hebb_start_is_the_uninformative_one_an_iteration_later():
    a, b = state_evolution(E, 20.0, n_iter=5), state_evolution(E, 20.0, start="hebb", n_iter=4)
    np.testing.assert_array_equal(a.q[1:], b.q)
    p1, alpha, gamma = expit(-3.0), 20.0, 10.0
    R = alpha * p1 / (alpha + 1 / gamma)
    Q = R**2 + alpha / gamma / (alpha + 1 / gamma) ** 2
    assert b.q[0] == pytest.approx(R**2 / Q)


def test_slope_is_the_measured_contraction():
    run = state_evolution(Ensemble(4.0, 10.0), 20.0)
    t = np.log(run.q[1:] / (1 - run.q[1:]))
    moves = np.diff(t)
    middle = len(moves) // 2
    assert moves[middle + 1] / moves[middle] == pytest.approx(run.slope, abs=1e-3)


def test_result_is_a_table_and_reads_well():
    run = state_evolution(E, 20.0, n_iter=3)
    assert list(run.to_frame()["q"]) == list(run.q)
    assert run.n_iter == 3
    assert run.distance[-1] == 1 - run.q[-1]
    assert "fixed point" in repr(run)
    assert run.to_dict()["status"] == "ITERATION_LIMIT"


@pytest.mark.parametrize("start", ["amp", -0.1, 1.1, math.nan, True, None])
def test_bad_starts_are_refused(start):
    with pytest.raises(ParameterError, match="start"):
        state_evolution(E, 20.0, start=start)


@pytest.mark.parametrize("n_iter", [0, -1, 2.5, True])
def test_bad_counts_are_refused(n_iter):
    with pytest.raises(ParameterError, match="n_iter"):
        state_evolution(E, 20.0, n_iter=n_iter)


def test_wrong_belief_is_refused():
    with pytest.raises(ParameterError, match="gamma_tilde"):
        state_evolution(Ensemble(0.0, 10.0, 5.0), 1.0)


def test_extreme_parameters_end_somewhere():
    for alpha, eta, gamma in [
        (1e-3, 40.0, 1e-3),
        (1e7, -40.0, 1e4),
        (1e7, 40.0, 1e4),
        (1.0, -math.inf, 10.0),
    ]:
        run = state_evolution(Ensemble(eta, gamma), alpha, n_iter=50)
        assert np.isfinite(run.q).all()
        assert run.q[-1] == pytest.approx(run.fixed_point, rel=1e-6)
