from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from outlearn.exceptions import ParameterError
from outlearn.numerics import proximal, proximal_by_search, sigmoid_prox
from outlearn.numerics.proximal import _excess


def brute_force(a: float, b: float) -> float:
    """Every root of s = a + b sigma(s) by bisection between turning points; the best of them."""
    delta = a + b / 2  # exact where it matters (Sterbenz)

    def g(s):
        return s - b / 2 * np.tanh(s / 2) - delta

    ends = [a - 1.0, a + b + 1.0]
    if b > 4:
        turn = 2 * np.arccosh(np.sqrt(b) / 2)
        ends = [a - 1.0, -turn, turn, a + b + 1.0]
    roots = []
    for low, high in pairwise(ends):
        if low < high and g(low) * g(high) <= 0:
            rising = g(high) > g(low)
            for _ in range(200):
                middle = (low + high) / 2
                if (g(middle) > 0) == rising:
                    high = middle
                else:
                    low = middle
            roots.append((low + high) / 2)
    # with c = s - a the objective is softplus(s) - c²/(2b)
    return max(roots, key=lambda s: np.logaddexp(0, s) - (s - a) ** 2 / (2 * b))


@settings(max_examples=300, deadline=None)
@given(st.floats(-60, 60), st.floats(1e-3, 200))
def test_sigmoid_prox_is_the_best_root(a, b):
    if abs(a + b / 2) < 1e-9:
        return
    s = float(sigmoid_prox(a, b))
    expected = brute_force(a, b)
    # at the cusp (b near 4, a near -2) a root moves as the cube root of rounding; elsewhere 1e-12
    slack = 1e-15 * (1 + abs(a) + b) / max(abs(1 - b * expit(s) * expit(-s)), 1e-12)
    assert s == pytest.approx(expected, rel=1e-12, abs=max(1e-12, slack))


def test_sigmoid_prox_at_the_cusp_and_beyond():
    delta = np.array([1e-12, 1e-9, 1e-6, 1e-3])
    s = sigmoid_prox(-2.0 + delta, 4.0)
    exact_delta = (-2.0 + delta) + 2.0
    np.testing.assert_allclose(2 * 2 * _series(s / 2) / 2, exact_delta, rtol=1e-11)
    low, high = sigmoid_prox([-5.0 - 1e-9, -5.0 + 1e-9], 10.0)
    assert low == pytest.approx(-high, abs=1e-7)
    assert high > 4.9


def _series(t):
    """t - tanh t by Taylor series; the arguments above are small."""
    return t**3 / 3 - 2 * t**5 / 15 + 17 * t**7 / 315 - 62 * t**9 / 2835 + 1382 * t**11 / 155925


@pytest.mark.parametrize("t", [0.01, 0.1, 0.3, 0.3499, 0.36, 1.0])
def test_excess_has_no_cancellation(t):
    from fractions import Fraction
    from math import factorial

    x = Fraction(t)
    sinh = sum(x ** (2 * k + 1) / factorial(2 * k + 1) for k in range(14))
    cosh = sum(x ** (2 * k) / factorial(2 * k) for k in range(14))
    assert _excess(t) == pytest.approx(float(x - sinh / cosh), rel=3e-15 if t < 0.35 else 3e-14)


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e5, 1e5), st.floats(0, 1e6))
def test_sigmoid_prox_solves_its_equation_anywhere(a, b):
    s = float(sigmoid_prox(a, b))
    assert np.isfinite(s)
    assert abs(s - a - b * expit(s)) <= 1e-13 * (1 + abs(a) + b)
    assert a <= s + 1e-9 * (1 + abs(a))
    assert s <= a + b + 1e-9 * (1 + abs(a) + b)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("b", lambda: sigmoid_prox(0.0, -1.0)),
        ("b", lambda: sigmoid_prox(0.0, [1.0, np.inf])),
        ("a", lambda: sigmoid_prox([0.0, np.nan], 1.0)),
        ("a", lambda: sigmoid_prox("x", 1.0)),
        ("w", lambda: proximal(np.sign, np.inf, 1.0)),
        ("w", lambda: proximal(np.sign, "x", 1.0)),
        ("step", lambda: proximal(np.sign, 1.0, 0.0)),
        ("step", lambda: proximal(np.sign, 1.0, np.inf)),
        ("step", lambda: proximal_by_search(np.abs, 1.0, np.nan, reach=1.0)),
    ],
)
def test_what_no_prox_can_answer_is_refused(name, call):
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.name == name


@pytest.mark.parametrize("step", [1e-3, 1.0, 50.0])
def test_bracketing_prox_of_convex_losses(step):
    w = np.linspace(-5, 5, 41)
    np.testing.assert_allclose(proximal(lambda u: u, w, step), w / (1 + step), rtol=1e-13, atol=1e-15)
    soft = np.sign(w) * np.maximum(np.abs(w) - step, 0)
    np.testing.assert_allclose(proximal(np.sign, w, step), soft, rtol=1e-13, atol=1e-12)
    hinge = np.where(w >= 1, w, np.minimum(1.0, w + step))
    np.testing.assert_allclose(proximal(lambda u: -(u < 1).astype(float), w, step), hinge, atol=1e-12)


def test_search_agrees_with_the_sigmoid_prox():
    # the soft loss in its own field u: s = a + b sigma(s) with step b
    w = np.array([-9.0, -6.1, -5.9, -4.0, 3.0])
    found = proximal_by_search(lambda u: -np.logaddexp(0, u), w, 12.0, reach=30.0)
    np.testing.assert_allclose(found, sigmoid_prox(w, 12.0), atol=1e-6)
