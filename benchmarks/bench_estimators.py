"""Classifiers: fit time against a spherical mixture on folded data and logistic regression; first use."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from benchmarks import Row, interleaved
from outlearn.estimators import SoftSelectionClassifier
from outlearn.model import Ensemble, overlaps, sample


def rows() -> Iterator[Row]:
    warnings.simplefilter("ignore")
    for n, p in ((50, 5_000), (100, 10_000)):
        data = sample(Ensemble.from_contamination(0.8, gamma=10.0), n, p, rng=0)
        folded = data.X * data.y[:, None]
        hebb = folded.mean(axis=0)
        ours = SoftSelectionClassifier(covariance="spherical", garbage_covariance="shared", label_noise=0)
        peer = GaussianMixture(
            2, covariance_type="spherical", means_init=[0 * hebb, 2 * hebb], tol=1e-6, max_iter=300
        )
        plain = LogisticRegression(max_iter=500)
        mine, theirs, logistic = interleaved(
            lambda m=ours, d=data: m.fit(d.X, d.y),
            lambda m=peer, f=folded: m.fit(f),
            lambda m=plain, d=data: m.fit(d.X, d.y),
            repeats=1,
        )
        gap = peer.means_[np.argmax((peer.means_**2).sum(axis=1))]
        detail = (
            f"N={n} P={p}, {mine:.2g} s; errors: ours {overlaps(ours.coef_[0], data.center).angle:.4f}, "
            f"mixture {overlaps(gap, data.center).angle:.4f}, "
            f"logistic {overlaps(plain.coef_[0], data.center).angle:.4f}"
        )
        yield Row(what="mixture(2, spherical) / soft, fit", ratio=theirs / mine, aim=">= 10", detail=detail)
        yield Row(what="logistic regression / soft, fit", ratio=logistic / mine, detail=f"N={n} P={p}")
    bare = _seconds("import numpy")
    whole = _seconds("import outlearn.estimators")
    fit = (
        "import numpy as np; from outlearn.estimators import SoftSelectionClassifier as S;"
        "r=np.random.default_rng(0); S(covariance='spherical',label_noise=0)"
        ".fit(r.standard_normal((500,20)), r.integers(0,2,500))"
    )
    yield Row(what="import of estimators / import of numpy", ratio=whole / bare, detail=f"{whole:.2f} s")
    first = _seconds(fit)
    yield Row(
        what="import and first fit / import of estimators", ratio=first / whole, detail=f"{first:.2f} s"
    )


def _seconds(code: str) -> float:
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        best = min(best, time.perf_counter() - start)
    return best
