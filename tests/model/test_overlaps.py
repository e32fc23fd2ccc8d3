import numpy as np
import pytest

from outlearn.model import angle, distance, overlaps


def test_errors_of_a_vector():
    B = np.ones(4)
    J = np.array([2.0, 0.0, 2.0, 0.0])
    R, Q = overlaps(J, B)
    assert (R, Q) == (1.0, 2.0)
    assert angle(R, Q) == pytest.approx(0.25)
    assert distance(R, Q) == pytest.approx(np.mean((J - B) ** 2))
    assert overlaps(J, B).angle == pytest.approx(0.25)
    assert overlaps(J, B).distance == pytest.approx(1.0)


def test_a_vanishing_vector_knows_nothing():
    assert angle(0.0, 0.0) == 0.5
    np.testing.assert_allclose(angle([1.0, -1.0, 0.0], [1.0, 1.0, 0.0]), [0.0, 1.0, 0.5])


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="coordinates"):
        overlaps([1.0], [1.0, 2.0])
