"""The gate against scipy's careful functions, over all magnitudes."""

import numpy as np
from scipy.special import expit, log_expit

from outlearn.inference.kernels import gate


def fields():
    a = np.concatenate(
        [np.linspace(-40, 40, 4001), np.logspace(-12, 8, 500), -np.logspace(-12, 8, 500), [0.0]]
    )
    return a[:, None]


def test_soft_gate_to_rounding():
    a = fields()
    counts = np.ones(len(a))
    for k in range(len(a)):  # one row each: the summed loss then is the loss
        w = a[k : k + 1].copy()
        total, loss = gate(w, counts[:1], np.ones(1), np.zeros(1), False)
        assert total[0] == w[0, 0]
        np.testing.assert_allclose(w[0, 0], expit(a[k, 0]), rtol=1e-14, atol=1e-307)
        np.testing.assert_allclose(loss[0], -log_expit(-a[k, 0]), rtol=2e-15, atol=1e-307)


def test_scale_offset_and_counts():
    rng = np.random.default_rng(0)
    H, counts = rng.normal(size=(101, 3)), rng.random(101)
    scale, offset = np.array([1.0, 2.0, 0.5]), np.array([-1.0, 0.0, 1.0])
    a = scale * H + offset
    for hard, weight, loss in (
        (False, expit(a), np.logaddexp(0, a)),
        (True, (a > 0) * 1.0, np.maximum(a, 0)),
    ):
        W = H.copy()
        total, summed = gate(W, counts, scale, offset, hard)
        np.testing.assert_allclose(W, weight, rtol=1e-14)
        np.testing.assert_allclose(total, counts @ weight, rtol=1e-13)
        np.testing.assert_allclose(summed, counts @ loss, rtol=1e-13)
