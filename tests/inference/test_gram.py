"""Few examples in many dimensions: the same fit from inner products alone."""

import numpy as np
import pytest

from outlearn.inference.gram import Reduction, _factor
from outlearn.inference.hard import hard_em
from outlearn.inference.rows import Rows
from outlearn.inference.selection import Selection
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, sample

EVERYTHING = ("contamination", "noise_variance", "center_variance")
P, N = 60, 700


def data(dtype=np.float64):
    d = sample(Ensemble(eta=0.0, gamma=20.0), N, P, rng=1, dtype=dtype)
    d.X[7] = d.X[3] * (d.y[3] * d.y[7])  # equal rows: the inner products are singular
    return d


@pytest.mark.parametrize("em", [soft_em, hard_em])
@pytest.mark.parametrize("learn", [(), EVERYTHING])
@pytest.mark.parametrize("dressed", [False, True])
def test_same_fit(em, learn, dressed, monkeypatch):
    d = data()
    extra = {"sample_weight": np.linspace(0.0, 2.0, P)} if dressed else {}
    options = {"contamination": 0.5, "noise_variance": 0.06, "learn": learn, "rng": 0, "n_init": 3, **extra}
    options |= {"trace": True, "accelerate": False, "tol": 1e-9}
    reduced = em(d.X, d.y, **options)
    monkeypatch.setattr(Reduction, "patience", staticmethod(lambda reads, n: None))
    direct = em(d.X, d.y, **options)
    if em is soft_em:  # hard selection may end before the inner products pay
        assert reduced.n_reads < direct.n_reads
    np.testing.assert_allclose(reduced.center, direct.center, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(reduced.inlier_proba, direct.inlier_proba, rtol=1e-6, atol=1e-12)
    assert reduced.energy == pytest.approx(direct.energy, rel=1e-12)
    assert reduced.n_iter == direct.n_iter
    np.testing.assert_allclose(reduced.energies, direct.energies, rtol=1e-11)
    for a, b in zip(reduced.starts, direct.starts, strict=True):
        assert (a.name, a.status, a.n_iter) == (b.name, b.status, b.n_iter)
        assert a.energy == pytest.approx(b.energy, rel=1e-11)
        assert a.overlap == pytest.approx(b.overlap, abs=1e-6)


def test_energy_never_rises():
    d = data()
    fit = soft_em(
        d.X, d.y, contamination=0.7, noise_variance=0.05, init="random", rng=0, trace=True, n_init=9
    )
    assert len(fit.energies) > 3
    assert (np.diff(fit.energies) <= 1e-8).all()


def test_single_precision_and_a_centre():
    d = data(np.float32)
    center = np.full(N, 0.3)
    rows = Rows.of(d.X, d.y, center=center)
    z = (d.X.astype(np.float64) - center) * d.y[:, None]
    reduction = Reduction(Selection(rows, hard=False), rows)
    L = reduction.problem.reads.X
    np.testing.assert_allclose(L @ L.T, z @ z.T, rtol=1e-9, atol=1e-9)


def test_patience_is_what_the_inner_products_cost():
    def rounds(p, n, starts):
        return Reduction.patience(Rows.of(np.ones((p, n))), starts)

    assert rounds(26, 104, 1) == 3
    assert rounds(26, 103, 1) is None
    assert rounds(64, 300, 8) == 0
    assert rounds(320, 1300, 4) == 0
    assert rounds(336, 1400, 4) == 22


def test_a_short_fit_never_makes_them(monkeypatch):
    monkeypatch.setattr("outlearn.inference.gram._gram", None)
    d = data()
    soft_em(d.X, d.y, contamination=0.5, noise_variance=0.05, init="hebb", max_iter=5)


def test_rank():
    assert _factor(np.ones((4, 4))).shape == (4, 1)
    assert not _factor(np.zeros((4, 4))).any()
