import numpy as np
import pytest

from outlearn.numerics import Status, refine_folds, trace


def s_shape(v, t, rows):
    """t = x³ - x + shift(row): folds at x = ±1/sqrt 3."""
    shift = 0.1 * rows
    x = v[:, 0]
    return (x**3 - x - t + shift)[:, None], (3 * x**2 - 1)[:, None, None]


def test_many_curves_pass_their_folds_in_lockstep():
    start = np.array([[-1.6], [-1.6], [-1.6]])
    t0 = start[:, 0] ** 3 - start[:, 0] + 0.1 * np.arange(3)
    curves = trace(s_shape, start, t0, np.ones(3), (-3.0, 3.0))
    for k, curve in enumerate(curves):
        assert curve.status is Status.CONVERGED
        assert len(curve.folds) == 2
        assert len(curve.pieces) == 3
        x = np.concatenate([curve.v, curve.parameter[:, None]], axis=1)
        folds, residual, slope = refine_folds(s_shape, x[curve.folds], x[curve.folds + 1], np.full(2, k))
        height = 2 / (3 * np.sqrt(3))
        assert np.sort(folds[:, 1]) == pytest.approx([0.1 * k - height, 0.1 * k + height], abs=1e-13)
        assert np.abs(folds[:, 0]) == pytest.approx(np.full(2, 1 / np.sqrt(3)), abs=1e-9)
        assert residual.max() < 1e-12
        assert slope.max() < 1e-9
        assert np.abs(s_shape(curve.v, curve.parameter, np.full(len(x), k))[0]).max() < 1e-10


def test_a_vanishing_solution_ends_its_curve():
    def vanish(v, t, rows):  # e^v = t
        return (v[:, 0] - np.log(np.maximum(t, 1e-300)))[:, None], np.ones((len(v), 1, 1))

    (curve,) = trace(vanish, np.array([[0.0]]), np.array([1.0]), np.array([-1.0]), (-1.0, 2.0), lowest=-3.0)
    assert curve.status is Status.OUT_OF_RANGE
    assert curve.v[-1, 0] < -3.0


def test_progress_is_told():
    heard = []
    start = np.array([[-1.6]])
    trace(s_shape, start, start[:, 0] ** 3 - start[:, 0], np.ones(1), (-3.0, 3.0), progress=heard.append)
    assert heard[-1] == 1.0


def test_a_closed_curve_is_walked_once():
    def circle(v, t, rows):
        return v**2 + t[:, None] ** 2 - 1.0, 2.0 * v[:, :, None]

    (curve,) = trace(circle, np.array([[1.0]]), np.array([0.0]), np.array([1.0]), (-2.0, 2.0))
    assert curve.status is Status.CONVERGED
    assert len(curve.folds) == 2
    assert len(curve.parameter) < 60
    assert curve.v[-1, 0] == pytest.approx(1.0, abs=0.2)
