"""Every way of reading gives what the dense formula gives."""

import numpy as np
import pytest
from scipy import sparse

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.rows import Reads, Rows

P, N, G = 1301, 17, 3


def make(kind, dtype):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(P, N)).astype(dtype)
    if kind == "sparse":
        X[rng.random(X.shape) < 0.7] = 0.0
        return X, sparse.csr_array(X)
    return X, np.asarray(X, order=kind)


@pytest.mark.parametrize("kind", ["C", "F", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dressed", [False, True])
def test_against_the_formula(kind, dtype, dressed):
    X, given = make(kind, dtype)
    rng = np.random.default_rng(1)
    D, W = rng.normal(size=(G, N)), rng.random((P, G))
    signs = rng.choice([-1, 1], size=P) if dressed else None
    weight = rng.random(P) if dressed else None
    center = rng.normal(size=N) if dressed else None
    rows = Rows.of(given, signs, weight, center=center)
    z = X.astype(np.float64)
    if dressed:
        z = signs[:, None] * (z - center)
    counts = weight if dressed else np.ones(P)
    tol = {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-4, "atol": 2e-4}
    np.testing.assert_allclose(rows.fields(D), z @ D.T, **tol)
    np.testing.assert_allclose(rows.weighted_sums(W), (W * counts[:, None]).T @ z, **tol)
    np.testing.assert_allclose(rows.square_norms(), (z * z).sum(axis=1), rtol=1e-5)
    seen = np.zeros(P)

    def respond(block, H):
        seen[block] += 1
        return np.column_stack([np.tanh(H[:, 0]), H[:, 1] ** 2])

    before = rows.n_reads
    got = rows.sweep(D, respond)
    H = z @ D.T
    want = np.column_stack([np.tanh(H[:, 0]), H[:, 1] ** 2])
    np.testing.assert_allclose(got, (want * counts[:, None]).T @ z, **tol)
    assert rows.n_reads == before + 1
    assert (seen == 1).all()
    assert isinstance(rows, Reads)


def test_the_matrix_is_used_as_it_is():
    for order in "CF":
        X = np.ones((5, 3), dtype=np.float32, order=order)
        assert Rows.of(X).X is X


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("outlearn.inference.rows._ONE_THREAD_BYTES", 0)
    X, _ = make("C", np.float64)
    D = np.random.default_rng(0).normal(size=(2, N))
    one, two = Rows.of(X), Rows.of(X, n_threads=2)
    np.testing.assert_array_equal(one.fields(D), two.fields(D))
    np.testing.assert_allclose(one.sweep(D, lambda s, H: H), two.sweep(D, lambda s, H: H), rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "options", "says"),
    [
        ([[1.0, np.nan]], {}, "row 0"),
        ([[1.0], [np.inf]], {}, "row 1"),
        ([1.0, 2.0], {}, "matrix"),
        ([["a"]], {}, "numbers"),
        (np.empty((0, 3)), {}, "empty"),
        ([[1.0 + 1j]], {}, "complex"),
        ([[1.0]], {"signs": [0]}, "-1 or \\+1"),
        ([[1.0]], {"signs": [1, 1]}, "1 rows"),
        ([[1.0]], {"sample_weight": [-1.0]}, ">= 0"),
        ([[1.0]], {"sample_weight": [0.0]}, "not all zero"),
        ([[1.0]], {"sample_weight": [1j]}, "numbers"),
        ([[1.0]], {"sample_weight": [1e200]}, "can be counted"),
        ([[1.0]], {"sample_weight": [1e-200]}, "can be counted"),
        ([[1e-200]], {}, "too small to square"),
        ([[1.0]], {"sample_weight": [1.0, 1.0]}, "1 rows"),
        ([[1.0]], {"center": [np.nan]}, "center"),
    ],
)
def test_bad_data_is_named(X, options, says):
    with pytest.raises(DataError, match=says):
        Rows.of(X, **options)


def test_bad_thread_count():
    with pytest.raises(ParameterError, match="n_threads"):
        Rows.of([[1.0]], n_threads=0)


def test_shapes_that_do_not_match():
    rows = Rows.of(np.ones((4, 2)))
    with pytest.raises(DataError, match="2 columns"):
        rows.fields(np.ones((1, 3)))
    with pytest.raises(DataError, match="4 rows"):
        rows.weighted_sums(np.ones((3, 1)))


@pytest.mark.parametrize("kind", ["C", "F", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("directions", [1, 2, 5, 9])
@pytest.mark.parametrize("hard", [False, True])
def test_selection_against_the_formula(kind, dtype, directions, hard):
    X, given = make(kind, dtype)
    rng = np.random.default_rng(2)
    D, scale, offset = rng.normal(size=(directions, N)), rng.random(directions), rng.normal(size=directions)
    signs, weight, center = rng.choice([-1, 1], size=P), rng.random(P), rng.normal(size=N)
    rows = Rows.of(given, signs, weight, center=center)
    z = signs[:, None] * (X.astype(np.float64) - center)
    a = scale * (z @ D.T) + offset
    want = (a > 0) * 1.0 if hard else 1 / (1 + np.exp(-a))
    loss = np.maximum(a, 0) if hard else np.logaddexp(0, a)
    out = np.empty((P, directions))
    before = rows.n_reads
    sums, total, losses = rows.select(D, scale, offset, hard=hard, out=out)
    assert rows.n_reads == before + 1
    # products of float32 data are made in float64 where the pass is compiled
    exact = dtype is np.float64 or directions == 1 or (kind == "C" and directions < 8)
    tol = 1e-9 if exact else 2e-4
    np.testing.assert_allclose(out, want, atol=tol)
    np.testing.assert_allclose(sums, (want * weight[:, None]).T @ z, rtol=tol, atol=300 * tol)
    np.testing.assert_allclose(total, weight @ want, rtol=tol)
    np.testing.assert_allclose(losses, weight @ loss, rtol=tol)
