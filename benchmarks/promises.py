"""Are the promises of diagnose and plan kept? ``python -m benchmarks.promises errors`` (or another name).

errors: 40 random ensembles; the 90 % interval of every learner's direction error against its runs.
coverage: the 90 % intervals of contamination, label noise, gamma and noise variance.
plan: draw the number of examples that a plan asks for, run, compare with the target.
verdicts: the share of false verdicts among the kept and the discarded, nominal against realised.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from outlearn.inference.amp import amp
from outlearn.inference.hard import hard_em
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, angle, sample


def draw(rng: np.random.Generator, label_noise: bool = True) -> dict[str, float]:
    """One random ensemble of moderate size with a signal that can be found."""
    while True:
        n = int(rng.integers(50, 401))
        world = {
            "n_features": n,
            "n_samples": int(n * np.exp(rng.uniform(np.log(0.7), np.log(20.0)))),
            "contamination": float(rng.uniform(0.0, 0.92)),
            "gamma": float(np.exp(rng.uniform(np.log(2.0), np.log(15.0)))),
            "label_noise": float(rng.choice([0.0, 0.0, 0.1])) if label_noise else 0.0,
        }
        signal = (1 - world["contamination"]) * np.sqrt(world["n_samples"] / n * world["gamma"])
        if signal > 0.7:
            return world


def make(world: dict[str, float], rng: np.random.Generator):
    """Data of that ensemble, some labels flipped."""
    ensemble = Ensemble.from_contamination(world["contamination"], gamma=world["gamma"])
    data = sample(ensemble, world["n_features"], world["n_samples"], rng)
    flip = (rng.random(world["n_samples"]) < world["label_noise"]) & data.informative
    return data, np.where(flip, -data.y, data.y), flip


def run(learner: str, data, y, world) -> float:
    """Direction error of one learner that knows the ensemble where it needs to."""
    X, gamma, epsilon = data.X, world["gamma"], world["contamination"]
    garbage = 1.0 - (1.0 - epsilon) * (1.0 - world["label_noise"])
    known = {"contamination": garbage, "noise_variance": 1.0 / gamma}
    if learner == "hebb":
        J = y @ X
    elif learner == "bayes":
        J = amp(
            X,
            y,
            contamination=epsilon,
            noise_variance=1.0 / gamma,
            label_noise=world["label_noise"] or None,
        ).center
    elif learner == "soft":
        J = soft_em(X, y, **known, init="hebb").center
    elif learner == "hard":
        J = hard_em(X, y, **known, init="hebb").center
    elif learner == "logistic":
        Z = X * np.sqrt(gamma)
        J = LogisticRegression(C=1.0, fit_intercept=False, max_iter=2000).fit(Z, y).coef_.ravel()
    else:
        J = LinearDiscriminantAnalysis().fit(X, y).coef_.ravel()
    B = data.center
    return float(angle(J @ B / np.sqrt(B @ B), J @ J))


def errors(n_ensembles: int = 40, seed: int = 0) -> pd.DataFrame:
    from outlearn.practice import diagnose

    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n_ensembles):
        world = draw(rng)
        data, y, _ = make(world, rng)
        found = diagnose(data.X, y)
        for p in found.predictions:
            measured = run(p.learner, data, y, world)
            e = p.direction_error
            rows.append(
                {
                    "ensemble": k,
                    **world,
                    "learner": p.learner,
                    "predicted": e.value,
                    "low": e.low,
                    "high": e.high,
                    "measured": measured,
                    "inside": measured in e,
                    "contamination_found": found.contamination.value,
                    "gamma_found": found.effective.gamma.value,
                }
            )
    return pd.DataFrame(rows)


def coverage(n_runs: int = 60, seed: int = 1) -> pd.DataFrame:
    from outlearn.practice.effective import estimate_ensemble
    from outlearn.practice.folding import fold

    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n_runs):
        world = draw(rng)
        data, y, _ = make(world, rng)
        e = estimate_ensemble(fold(data.X, y))
        truth = {
            "contamination": world["contamination"],
            "label_noise": world["label_noise"],
            "gamma": world["gamma"],
            "noise_variance": 1.0 / world["gamma"],
        }
        for name, value in truth.items():
            found = getattr(e, name)
            rows.append({"parameter": name, "inside": value in found, "width": found.high - found.low})
    table = pd.DataFrame(rows).groupby("parameter")
    return pd.DataFrame(
        {"runs": table.size(), "inside 90 %": table.inside.mean(), "mean width": table.width.mean()}
    )


def verdicts(n_runs: int = 40, seed: int = 2) -> pd.DataFrame:
    from outlearn.practice import diagnose

    rng = np.random.default_rng(seed)
    rows = []
    for few in (False, True):
        for _ in range(n_runs):
            world = draw(rng)
            if few:  # fewer examples than features
                world |= {"n_features": 400, "n_samples": 300, "gamma": 10.0, "label_noise": 0.0}
                world["contamination"] = float(rng.uniform(0.1, 0.7))
            data, y, flip = make(world, rng)
            found = diagnose(data.X, y)
            good = data.informative & ~flip
            v = found.verdicts.verdict
            rows.append(
                {
                    "data": "P < N" if few else "P > 0.7 N",
                    "kept": (v == "keep").sum(),
                    "false_kept": (~good[v == "keep"]).sum(),
                    "discarded": (v == "discard").sum(),
                    "false_discarded": good[v == "discard"].sum(),
                }
            )
    total = pd.DataFrame(rows).groupby("data").sum()
    total["false among kept"] = total.false_kept / total.kept
    total["false among discarded"] = total.false_discarded / total.discarded
    return total


def kept(n_ensembles: int = 12, n_repeats: int = 3, seed: int = 3) -> pd.DataFrame:
    """Diagnose few data, plan, draw what the plan asks for, measure."""
    from scipy.special import ndtr

    from outlearn.practice import diagnose, plan

    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < n_ensembles:
        world = draw(rng, label_noise=False) | {"n_features": 100, "n_samples": 500}
        data, y, _ = make(world, rng)
        found = diagnose(data.X, y)
        if not found.detected:
            continue
        target = 0.5 * found.prediction("bayes").direction_error.value
        p = plan(found, target_error=target, kind="direction", learners=("bayes",))
        need = p.need("bayes")
        if need.n_samples is None or need.n_samples > 20_000:
            continue
        more = world | {"n_samples": need.n_samples}
        measured = []
        for _ in range(n_repeats):
            data, y, _ = make(more, rng)
            measured.append(run("bayes", data, y, more))
        mean = float(np.mean(measured))
        rows.append(
            {
                "contamination": world["contamination"],
                "gamma": world["gamma"],
                "target": target,
                "asked for": need.n_samples,
                "from": need.low,
                "to": need.high,
                "measured": mean,
                "measured/target": mean / target,
                "test error": float(ndtr(-np.sqrt(world["gamma"]) * np.cos(np.pi * mean))),
            }
        )
    return pd.DataFrame(rows)


def main(what: str = "errors") -> None:
    warnings.simplefilter("ignore")
    pd.set_option("display.width", 200, "display.max_columns", 30)
    if what == "errors":
        table = errors()
        by = table.groupby("learner")
        summary = {
            "ensembles": by.size(),
            "correlation": by.apply(lambda t: np.corrcoef(t.predicted, t.measured)[0, 1]),
            "inside 90 % interval": by["inside"].mean(),
            "mean predicted": by["predicted"].mean(),
            "mean measured": by["measured"].mean(),
            "mean half width": by.apply(lambda t: 0.5 * (t.high - t.low).mean()),
        }
        print(pd.DataFrame(summary).round(3).to_string())
    else:
        made = {"coverage": coverage, "verdicts": verdicts, "plan": kept}[what]()
        print(made.round(3).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
