from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlearn.exceptions import ParameterError
from outlearn.numerics.proximal import proximal_by_search
from outlearn.theory.losses import Hinge, Huber, Logistic, Loss, Square, SquaredHinge

LOSSES = [Square(), Logistic(), Hinge(), SquaredHinge(), Huber(), Huber(0.3)]
W = np.array([-30.0, -3.0, -1.1, -0.2, 0.0, 0.4, 0.9, 1.0, 1.3, 2.7, 40.0])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("t", [1e-3, 0.4, 2.0, 50.0])
def test_prox_is_the_minimiser_found_by_search(loss, t):
    found = proximal_by_search(loss.value, W, t, reach=5.0 + 2.0 * t + 0.0 * W.max() + 45.0)
    prox = loss.prox(W, t)
    np.testing.assert_allclose(prox, found, atol=2e-6)
    objective = [loss.value(u) + (u - W) ** 2 / (2 * t) for u in (prox, found)]
    assert (objective[0] <= objective[1] + 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("t", [0.01, 1.0, 20.0])
def test_slope_is_the_derivative_of_the_envelope(loss, t):
    w = np.linspace(-6.0, 6.0, 240) + 0.00123
    w = w[[min(abs(x - b) for b in (*loss.breaks(t), 99.0)) > 1e-3 for x in w]]

    def envelope(x):
        u = loss.prox(x, t)
        return loss.value(u) + (u - x) ** 2 / (2 * t)

    g, d = loss.slope(w, t)
    h = 1e-4
    np.testing.assert_allclose(g, (envelope(w + h) - envelope(w - h)) / (2 * h), atol=1e-6)
    numerical = (loss.slope(w + h, t)[0] - loss.slope(w - h, t)[0]) / (2 * h)
    np.testing.assert_allclose(d, numerical, atol=2e-5 + 1e-5 / t)
    np.testing.assert_allclose(w - t * g, loss.prox(w, t), atol=1e-12)
    default = Loss.slope(loss, w, t)
    np.testing.assert_allclose(default[0], g, atol=1e-9 / t)
    np.testing.assert_allclose(default[1], d, atol=1e-4)


@given(w=st.floats(-1e6, 1e6), t=st.floats(1e-8, 1e8))
def test_logistic_prox_solves_its_equation_anywhere(w, t):
    p = float(Logistic().prox(np.array([w]), t)[0])
    assert w <= p <= w + t
    # the residual changes sign within a few floats of the root
    step = 4 * np.spacing(abs(p) + abs(w) + t * 1e-16 + 1e-300)
    gap = [x - w - t * np.exp(-np.logaddexp(0, x)) for x in (p - step, p + step)]
    slack = 8 * np.spacing(abs(w) + t) + 5e-16
    assert gap[0] <= slack
    assert gap[1] >= -slack


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_kinks_are_where_the_prox_bends(loss):
    t = 0.7
    w = np.linspace(-4, 4, 4001)
    bend = np.abs(np.diff(loss.slope(w, t)[1]))
    jumps = w[:-1][bend > 0.1]
    assert len(jumps) == (0 if isinstance(loss, Square | Logistic) else len(loss.breaks(t)))
    assert all(min(abs(x - b) for b in loss.breaks(t)) < 0.01 for x in jumps)


@pytest.mark.parametrize("delta", [0.0, -1.0, float("inf"), float("nan"), True, "1"])
def test_huber_refuses_a_bad_delta(delta):
    with pytest.raises(ParameterError, match="delta"):
        Huber(delta)


def test_a_loss_must_give_value_and_prox():
    @dataclass(frozen=True)
    class Half(Loss):
        def value(self, u):
            return u

    with pytest.raises(TypeError, match="prox"):
        Half()
