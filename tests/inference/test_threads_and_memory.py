"""Nothing of the size of the data is ever allocated; threads are bounded and change nothing."""

import threading
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from outlearn.inference import rows as rows_module
from outlearn.inference.gram import Reduction
from outlearn.inference.hard import hard_em
from outlearn.inference.rows import Rows
from outlearn.inference.selection import Selection
from outlearn.inference.soft import soft_em

BELIEF = {"contamination": 0.5, "noise_variance": 1.0, "max_iter": 4, "rng": 0}


def make(order, dtype, p=12_000, n=300):
    X = np.random.default_rng(0).standard_normal((p, n), dtype=dtype)
    return sparse.csr_array(X) if order == "csr" else np.asarray(X, order=order)


@pytest.mark.parametrize("order", ["C", "F", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("em", "options"), [(soft_em, {"init": "hebb"}), (soft_em, {}), (hard_em, {})])
def test_no_hidden_copy(order, dtype, em, options):
    X = make(order, dtype)
    y = np.where(np.random.default_rng(1).random(X.shape[0]) < 0.5, -1.0, 1.0)
    nbytes = X.data.nbytes if order == "csr" else X.nbytes
    em(X[:50], y[:50], **BELIEF, **options)  # compile outside the measurement
    tracemalloc.start()
    em(X, y, **BELIEF, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * nbytes, f"{peak / nbytes:.2f} of the data"


def test_the_reduced_form_is_small():
    X = np.random.default_rng(0).standard_normal((100, 40_000))
    tracemalloc.start()
    rows = Rows.of(X)
    Reduction(Selection(rows, hard=False), rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * X.nbytes


@pytest.mark.parametrize("order", ["C", "F", "csr"])
def test_threads_change_nothing(order, monkeypatch):
    monkeypatch.setattr(rows_module, "_ONE_THREAD_BYTES", 0)
    X = make(order, np.float64, 3000, 20)
    for options in ({"init": "hebb"}, {}):
        one = soft_em(X, **BELIEF, **options)
        three = soft_em(X, **BELIEF, **options, n_threads=3)
        np.testing.assert_allclose(three.center, one.center, rtol=1e-10, atol=1e-13)
        assert three.energy == pytest.approx(one.energy, rel=1e-13)


def test_small_data_stay_on_one_thread(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a pool was made for small data")

    monkeypatch.setattr(rows_module, "ThreadPoolExecutor", refuse)
    soft_em(make("C", np.float64, 1000, 20), **BELIEF, n_threads=8)


def test_threads_are_bounded(monkeypatch):
    monkeypatch.setattr(rows_module, "_ONE_THREAD_BYTES", 0)
    seen = set()
    rows = Rows.of(make("C", np.float64, 9000, 5), n_threads=2)

    def respond(block, H):
        seen.add(threading.get_ident())
        return H

    rows.sweep(np.ones((1, 5)), respond)
    assert 1 <= len(seen) <= 2
