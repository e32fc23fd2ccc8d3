"""The matrix-free draw has the law of the dense one: exactly in its algebra, in distribution over runs."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from outlearn.exceptions import ConvergenceError, DataError, ParameterError
from outlearn.inference.many import hard_em_many, soft_em_many
from outlearn.inference.rows import Reads, Rows
from outlearn.model import Ensemble, overlaps, sample
from outlearn.simulation import Dice, Task, TaskStats
from outlearn.simulation import run as run_module
from outlearn.simulation.dice import fast_stream
from outlearn.simulation.dice_many import MatrixFreeEM
from outlearn.simulation.run import make_runs

ENSEMBLE = Ensemble(eta=0.5, gamma=10.0)
N, P = 30, 90


def visited(rng, *, dice=None, memory=1 << 31):
    """A Dice that was asked for four answers on each side, with questions and answers."""
    dice = Dice(ENSEMBLE, N, P, rng, memory=memory) if dice is None else dice
    D = rng.standard_normal((2, N))
    H = dice.fields(D)
    W = np.tanh(H)
    S = dice.weighted_sums(W)
    again = []
    total = dice.sweep(S, lambda rows, H: again.append(H) or np.tanh(H[:, ::-1]))
    return (
        dice,
        np.vstack([D, S]),
        np.hstack([H, again[0]]),
        np.hstack([W, np.tanh(again[0][:, ::-1])]),
        np.vstack([S, total]),
    )


def test_it_has_the_protocol_of_rows():
    dice = Dice(ENSEMBLE, N, P, rng=0)
    assert isinstance(dice, Reads)
    assert dice.shape == (P, N)
    assert dice.center @ dice.center == pytest.approx(N)
    visited(np.random.default_rng(0), dice=dice)
    assert dice.n_reads == 3
    assert dice.n_directions == (4, 4)


def test_the_sum_of_the_norms_is_drawn_before_the_matrix_and_kept():
    sums, dense = [], []
    rng = np.random.default_rng(8)
    for run in range(400):
        dice = Dice(ENSEMBLE, N, P, rng)
        if run % 2:
            visited(rng, dice=dice)
        sums.append(dice.square_norms().sum())
        if run < 40:
            visited(rng, dice=dice)
            assert (dice.to_dense() ** 2).sum() == pytest.approx(sums[-1], rel=1e-10)
        dense.append((sample(ENSEMBLE, N, P, rng).X ** 2).sum())
    assert stats.ks_2samp(sums, dense).pvalue > 1e-3


def test_asking_for_everything_leaves_nothing_unseen():
    dice = Dice(ENSEMBLE, 5, 9, rng=0)
    total = dice.square_norms().sum()
    Y = dice.fields(np.eye(5))
    assert (Y**2).sum() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(dice.weighted_sums(np.eye(9)), Y, atol=1e-12)
    np.testing.assert_allclose(dice.to_dense(), Y, atol=1e-12)


def test_what_was_said_is_kept_and_the_matrix_agrees_with_every_answer():
    dice, D, H, W, S = visited(np.random.default_rng(1))
    np.testing.assert_allclose(dice.fields(D), H, atol=1e-12)
    np.testing.assert_allclose(dice.weighted_sums(W), S, atol=1e-11)
    assert dice.n_directions == (4, 4)  # nothing new was drawn
    mixed = np.array([[0.3, -1.0, 2.0, 0.5]])
    np.testing.assert_allclose(dice.fields(mixed @ D), H @ mixed.T, atol=1e-11)
    # both sides tell of one matrix: W^T (Y D^T) = (W^T Y) D^T
    np.testing.assert_allclose(W.T @ H, S @ D.T, rtol=1e-10)
    Y = dice.to_dense()
    np.testing.assert_allclose(Y @ D.T, H, atol=1e-10)
    np.testing.assert_allclose(W.T @ Y, S, atol=1e-10)


def test_the_matrix_drawn_late_has_the_law_of_one_drawn_at_once():
    """Questions that depend on answers leave the noise independent N(0, 1/gamma), and of V."""
    rng = np.random.default_rng(2)
    noise, corners = [], []
    for _ in range(60):
        dice, *_ = visited(rng)
        G = (dice.to_dense() - np.outer(dice.informative, dice.center / np.sqrt(N))) * np.sqrt(10.0)
        noise.append(G)
        corners.append(G[0, 0])
    values = np.concatenate([G.ravel() for G in noise])
    assert stats.kstest(values, "norm").pvalue > 1e-3
    assert stats.kstest(corners, "norm").pvalue > 1e-3
    # the singular values feel any error in the projections: a missing one inflates or shrinks a direction
    ours = [np.linalg.svd(G, compute_uv=False)[[0, -1]] for G in noise]
    theirs = [np.linalg.svd(rng.standard_normal((P, N)), compute_uv=False)[[0, -1]] for _ in range(300)]
    for edge in (0, 1):
        assert stats.ks_2samp(np.array(ours)[:, edge], np.array(theirs)[:, edge]).pvalue > 1e-3


def em(reads, start, steps):
    """A few plain EM steps over the protocol; returns the centre and the last fields."""
    c, fields = start, None
    for _ in range(steps):
        kept = {}

        def respond(rows, H, c=c, kept=kept):
            kept[rows.start] = (H.copy(), expit(10.0 * H - 5.0 * (c @ c) - ENSEMBLE.eta))
            return kept[rows.start][1]

        total = reads.sweep(c[None, :], respond)[0]
        fields = np.concatenate([kept[k][0] for k in sorted(kept)])
        weight = sum(kept[k][1].sum() for k in kept)
        c = total / (weight + reads.shape[1] / 10.0)
    return c, fields


def test_em_on_it_is_em_on_dense_data_in_law():
    """Two-sample tests over runs: R, Q, the mean square field, fields of both kinds, at steps 1, 2, 4."""
    n, p = 12, 48
    pvalues = []
    for steps in (1, 2, 4):
        draws = {"dice": [], "dense": []}
        for run in range(400):
            rng = np.random.default_rng([steps, run])
            start = rng.standard_normal(n) / np.sqrt(n)
            dice = Dice(ENSEMBLE, n, p, rng)
            data = sample(ENSEMBLE, n, p, rng)
            for name, reads, V, B in (
                ("dice", dice, dice.informative, dice.center),
                ("dense", Rows.of(data.X, signs=data.y), data.informative, data.center),
            ):
                c, h = em(reads, start, steps)
                o = overlaps(c * np.sqrt(n), B)
                good, bad = h[V][:1].ravel(), h[~V][:1].ravel()
                draws[name].append([o.R, o.Q, (h**2).mean(), *good[:1], *bad[:1]])
        ours, theirs = np.array(draws["dice"]), np.array(draws["dense"])
        pvalues += [stats.ks_2samp(ours[:, k], theirs[:, k]).pvalue for k in range(ours.shape[1])]
    # 15 tests: the smallest of them must not be smaller than chance allows, nor all of them small
    assert min(pvalues) > 1e-3
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("learner", "start", "compiled"),
    [
        ("soft", "random", False),
        ("soft", "random", True),
        ("soft", "hebb", True),
        ("hard", "hebb", False),
        ("hard", "hebb", True),
        ("amp", "hebb", False),
    ],
)
def test_whole_runs_have_the_same_law(monkeypatch, learner, start, compiled):
    """To convergence through the campaign's own code: dense, the algorithms on Dice, compiled runs."""
    monkeypatch.setattr(run_module, "is_small", lambda *_: compiled)
    found = []
    for draw in ("dense", "matrix-free"):
        task = Task(
            learner=learner, start=start, ensemble=ENSEMBLE, n_features=12, alpha=5, draw=draw, max_iter=300
        )
        found.append(TaskStats.of(task.strong_id, make_runs(task, 1, range(150))))
    dense, free = found
    assert dense.n_failed == free.n_failed == 0
    pvalues = [
        stats.ks_2samp(getattr(dense, name).values, getattr(free, name).values).pvalue
        for name in ("R", "Q", "energy", "iterations")
    ]
    assert min(pvalues) > 1e-3


@pytest.mark.parametrize("start", ["random", "hebb"])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("max_iter", [3, 500])
def test_a_compiled_run_is_em_on_one_matrix(hard, start, max_iter):
    """Put the matrix together from the answers; EM on it in full visits the same centres.

    In 12 dimensions 500 steps go on long after the whole matrix has been seen.
    """
    n, p = 12, 60
    ensemble = Ensemble(1.0, 10.0, gamma_tilde=8.0)
    B = np.random.default_rng(5).standard_normal(n)
    begin = np.random.default_rng(6).standard_normal(n) / np.sqrt(n)
    em = MatrixFreeEM(ensemble, n, p, hard=hard, tol=1e-9, max_iter=max_iter)
    fit = em.run(B, 11, None if start == "hebb" else begin)
    V = fast_stream(11).random(p) < ensemble.informative_fraction
    right, left = em._seen
    U, A, L, C = em._sides[0][:right], em._sides[1][:right], em._sides[2][:left], em._sides[3][:left]
    np.testing.assert_allclose(U @ U.T, np.eye(right), atol=1e-12)
    np.testing.assert_allclose(L @ L.T, np.eye(left), atol=1e-12)
    G = A.T @ U + L.T @ (C - (C @ U.T) @ U)
    Y = (G / np.sqrt(10.0) + np.outer(V, B / np.sqrt(n)))[None]
    full = (hard_em_many if hard else soft_em_many)(
        Y,
        init="hebb" if start == "hebb" else begin[None],
        contamination=1.0 / (1.0 + np.exp(-1.0)),
        noise_variance=1.0 / 8.0,
        tol=1e-9,
        max_iter=max_iter,
        keep_proba=True,
    )
    assert full.n_iter[0] == fit.n_iter
    np.testing.assert_allclose(fit.center, full.centers[0], atol=1e-11)
    assert fit.total_weight == pytest.approx(full.total_weights[0], rel=1e-10)
    assert fit.square == pytest.approx((full.inlier_probas[0] ** 2).sum(), rel=1e-10)


def test_a_draw_without_the_conditioning_would_be_found_out():
    """The same two-sample test rejects independent fresh noise at every question."""
    n, p = 12, 48

    class Forgetful(Dice):
        def _answer(self, x, here, there):
            return np.linalg.norm(x) * self._stream.standard_normal(there.length)

    q = {kind: [] for kind in (Dice, Forgetful)}
    for kind, values in q.items():
        for run in range(400):
            rng = np.random.default_rng([7, run])
            c, _ = em(kind(ENSEMBLE, n, p, rng), rng.standard_normal(n) / np.sqrt(n), 4)
            values.append(c @ c)
    assert stats.ks_2samp(*q.values()).pvalue < 1e-6


def test_beyond_its_memory_it_draws_the_rest_in_full_and_goes_on():
    memory = 8 * N * P  # room for the matrix and for 11 directions
    dice, D, H, W, S = visited(np.random.default_rng(3), memory=memory)
    for step in range(4):
        new = dice.fields(np.random.default_rng(step).standard_normal((3, N)))
        assert np.isfinite(new).all()
    assert "in full" in repr(dice)
    np.testing.assert_allclose(dice.fields(D), H, atol=1e-10)
    np.testing.assert_allclose(dice.weighted_sums(W), S, atol=1e-10)


def test_beyond_its_memory_with_no_room_for_the_matrix_it_says_so():
    dice = Dice(ENSEMBLE, N, P, rng=0, memory=32 * (N + P))
    dice.fields(np.eye(N)[:2])
    with pytest.raises(ConvergenceError, match="more than 2 directions"):
        dice.fields(np.eye(N)[2:3])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"n_features": 0}, "n_features"), ({"n_samples": 1.5}, "n_samples"), ({"memory": 100}, "memory")],
)
def test_bad_requests_are_named(arguments, name):
    with pytest.raises(ParameterError, match=name):
        Dice(ENSEMBLE, **({"n_features": 3, "n_samples": 4} | arguments))


@pytest.mark.parametrize("question", [np.ones(N), np.ones((1, N + 1)), np.full((1, N), np.nan)])
def test_bad_questions(question):
    with pytest.raises(DataError, match="directions"):
        Dice(ENSEMBLE, N, P, rng=0).fields(question)
