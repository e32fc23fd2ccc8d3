"""Verdicts: the sets are as large as the rate allows, and their realised errors stay near it."""

from __future__ import annotations

import numpy as np
import pytest

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, sample
from outlearn.practice import diagnose, judge
from outlearn.practice.folding import fold


def test_sets_are_maximal_and_within_the_rate():
    p = np.random.default_rng(0).beta(0.4, 0.4, 500)
    v = judge(p, fdr=0.1)
    kept, dropped = v.verdict == "keep", v.verdict == "discard"
    assert np.mean(1 - p[kept]) == pytest.approx(v.expected_false_keep)
    assert v.expected_false_keep <= 0.1
    assert v.expected_false_discard <= 0.1
    assert p[kept].min() > 0.5 > p[dropped].max()
    next_best = np.sort(p[~kept])[-1]
    assert (np.sum(1 - p[kept]) + 1 - next_best) / (kept.sum() + 1) > 0.1
    assert p[kept].min() > p[~kept].max()
    assert sum(v.counts.values()) == 500
    assert v.keep_proba[v.most_doubtful(1)[0]] == pytest.approx(p[np.argmin(np.abs(p - 0.5))])
    assert not (kept & dropped).any()


@pytest.mark.parametrize(("n", "p", "contamination"), [(100, 1500, 0.7), (500, 350, 0.5)], ids=["P>N", "P<N"])
def test_realised_false_discoveries_are_near_nominal(n, p, contamination):
    false, total = np.zeros(2), np.zeros(2)
    for seed in range(5):
        data = sample(Ensemble.from_contamination(contamination, gamma=10.0), n, p, seed)
        found = fold(data.X, data.y, structure="spherical").posterior
        verdict = judge(found.posterior[:, found.values == 1.0].ravel(), fdr=0.1).verdict
        for k, (name, wrong) in enumerate((("keep", ~data.informative), ("discard", data.informative))):
            false[k] += wrong[verdict == name].sum()
            total[k] += (verdict == name).sum()
    share = false / total
    spread = 3.0 * np.sqrt(0.1 * 0.9 / total)
    assert total.min() > 50
    assert np.all(share < 0.1 + spread), (share, total)
    assert np.all(share > 0.02), "verdicts are far more careful than they say"


@pytest.mark.parametrize("fdr", [0.0, 0.5, -1, "a", True])
def test_bad_rates(fdr):
    with pytest.raises(ParameterError, match="fdr"):
        judge([0.5], fdr=fdr)


def test_wrong_labels_are_told_from_garbage():
    data = sample(Ensemble.from_contamination(0.3, gamma=12.0), 60, 900, 1)
    flip = (np.random.default_rng(1).random(900) < 0.15) & data.informative
    v = diagnose(data.X, np.where(flip, -data.y, data.y)).verdicts
    assert v.wrong_label_proba[flip].mean() > 0.9
    assert v.garbage_proba[~data.informative].mean() > 0.85
    assert set(v.verdict[flip]) == {"discard"} or (v.verdict[flip] == "discard").mean() > 0.9
    frame = v.to_frame()
    np.testing.assert_allclose(
        frame[["keep_proba", "garbage_proba", "wrong_label_proba"]].sum(axis=1), 1.0, atol=1e-9
    )
