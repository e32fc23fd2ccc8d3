import numpy as np
import pytest

from outlearn.numerics import Status, newton


def cubic(v, rows):
    """(x - 1)(x - 2)(x - 3) in the first row's variable, scaled by the row."""
    x = v[:, 0]
    r = (x - 1) * (x - 2) * (x - 3)
    d = (x - 2) * (x - 3) + (x - 1) * (x - 3) + (x - 1) * (x - 2)
    return r[:, None], d[:, None, None]


def test_rows_are_independent():
    result = newton(cubic, np.array([[0.9], [2.05], [8.0]]))
    np.testing.assert_allclose(result.v[:, 0], [1, 2, 3], atol=1e-12)
    assert result.converged.all()
    assert (result.residual < 1e-10).all()


def test_deflation_finds_the_other_roots():
    known = np.full((1, 3, 1), np.nan)
    found = []
    for k in range(3):
        result = newton(cubic, np.array([[0.5]]), known=known, max_iterations=200)
        assert result.status[0] is Status.CONVERGED
        found.append(float(result.v[0, 0]))
        known[0, k] = result.v[0]
    assert sorted(found) == pytest.approx([1, 2, 3], abs=1e-8)


def test_no_root_is_said_so():
    def bowl(v, rows):
        return v**2 + 1.0, 2 * v[:, :, None]

    result = newton(bowl, np.array([[0.3], [4.0]]))
    assert not result.converged.any()
    assert all(s in (Status.STALLED, Status.ITERATION_LIMIT) for s in result.status)
    assert (result.residual >= 1.0).all()


def test_rows_that_cannot_be_evaluated_are_out_of_range():
    def undefined(v, rows):
        return np.full_like(v, np.nan), np.full((len(v), 1, 1), np.nan)

    assert newton(undefined, np.zeros((1, 1))).status[0] is Status.OUT_OF_RANGE


def test_damped_steps_rescue_where_newton_cannot_descend():
    # v - F(v) with F a contraction, but a Jacobian that points nowhere
    def stubborn(v, rows):
        return v - 0.5 * np.cos(v), np.full((len(v), 1, 1), -1e-9)

    result = newton(stubborn, np.array([[3.0]]), max_iterations=400)
    assert result.v[0, 0] == pytest.approx(0.45018361129, abs=1e-8)


def test_statuses_read_as_sentences():
    for status in Status:
        assert str(status)[0].isupper()
        assert str(status).endswith(".")
