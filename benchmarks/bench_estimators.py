"""Classifiers: fit time against a spherical mixture to the same energy and logistic regression; first use."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from benchmarks import Row, interleaved
from outlearn.estimators import SoftSelectionClassifier
from outlearn.inference import soft_em
from outlearn.model import Ensemble, overlaps, sample

_SLACK = 1e-6  # nats per example from the end of a long run: "the same energy" for every method
_TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-8)


def rows() -> Iterator[Row]:
    warnings.simplefilter("ignore")
    for n, p, repeats in ((50, 5_000, 5), (100, 2_000, 5), (100, 10_000, 3)):
        yield from _fits(n, p, repeats)
    yield from _first_use()


def _fits(n: int, p: int, repeats: int) -> Iterator[Row]:
    data = sample(Ensemble.from_contamination(0.8, gamma=10.0), n, p, rng=0)
    folded = data.X * data.y[:, None]
    hebb = folded.mean(axis=0)

    def classifier(tol: float) -> SoftSelectionClassifier:
        model = SoftSelectionClassifier(
            covariance="spherical", garbage_covariance="shared", label_noise=0, tol=tol
        )
        return model.fit(data.X, data.y)

    def engine(tol: float) -> object:
        learn = ("contamination", "noise_variance")
        return soft_em(
            data.X, data.y, contamination=0.5, noise_variance=0.1, learn=learn, init="hebb", tol=tol
        )

    def peer(tol: float) -> GaussianMixture:
        means = [0 * hebb, 2 * hebb]
        mixture = GaussianMixture(2, covariance_type="spherical", means_init=means, tol=tol, max_iter=1000)
        return mixture.fit(folded)

    ours = _cheapest(classifier, lambda m: m.energy_ / p)
    core = _cheapest(engine, lambda m: m.energy / p)
    theirs = _cheapest(peer, lambda m: -m.score(folded))
    whole = SoftSelectionClassifier()
    logistic = LogisticRegression(max_iter=500)
    mine, bare, other, plain, auto = interleaved(
        partial(classifier, ours),
        partial(engine, core),
        partial(peer, theirs),
        lambda: logistic.fit(data.X, data.y),
        lambda: whole.fit(data.X, data.y),
        repeats=repeats,
    )
    model, mixture = classifier(ours), peer(theirs)
    gap = mixture.means_[np.argmax((mixture.means_**2).sum(axis=1))]
    angles = [overlaps(c, data.center).angle for c in (model.coef_[0], gap, logistic.coef_[0])]
    detail = (
        f"N={n} P={p}, {mine * 1e3:.3g} ms ({model.n_iter_} steps against {mixture.n_iter_}); "
        "errors: ours {:.4f}, mixture {:.4f}, logistic {:.4f}".format(*angles)
    )
    same = f"each to {_SLACK:g} nats per example of its own end"
    yield Row(
        what="mixture(2, spherical) / soft classifier, fit", ratio=other / mine, aim=">= 10", detail=detail
    )
    yield Row(what="mixture(2, spherical) / soft_em, fit", ratio=other / bare, aim=">= 10", detail=same)
    yield Row(what="logistic regression / soft classifier, fit", ratio=plain / mine, detail=f"N={n} P={p}")
    yield Row(what="everything automatic / soft classifier, fit", ratio=auto / mine, detail=f"{auto:.2f} s")


def _cheapest(fit: Callable[[float], object], energy: Callable[[object], float]) -> float:
    """Loosest tolerance that ends as low as the tightest one does."""
    end = energy(fit(_TOLERANCES[-1]))
    return next(tol for tol in _TOLERANCES if energy(fit(tol)) <= end + _SLACK)


def _first_use() -> Iterator[Row]:
    bare = _seconds("import numpy")
    whole = _seconds("import outlearn.estimators")
    fit = (
        "import numpy as np; from outlearn.estimators import SoftSelectionClassifier as S;"
        "r=np.random.default_rng(0); y=r.integers(0,2,500);"
        "X=r.standard_normal((500,20)); X[::2]+=2*y[::2,None];"
        "S(covariance='spherical',label_noise=0).fit(X,y)"
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
