"""Figure 10, beyond the paper: what the usual classifiers reach on the same contaminated data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import minimize

from outlearn import theory
from outlearn.figures.compare import THEORY
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book, Panel, legend_below
from outlearn.model import Ensemble, angle, overlaps, sample

__all__ = ["LOSSES", "draw"]

Array = NDArray[np.float64]

LOSSES: dict[str, Any] = {
    "logistic": theory.Logistic(),
    "hinge": theory.Hinge(),
    "square": theory.Square(),
    "squared hinge": theory.SquaredHinge(),
    "huber": theory.Huber(),
}
_NAMES = {
    "logistic": "logistic regression",
    "hinge": "hinge (SVM)",
    "square": "square (ridge)",
    "squared hinge": "squared hinge",
    "huber": "Huber",
    "soft": "soft selection",
    "hard": "hard selection",
    "hebb": "Hebb rule",
    "bayes": "Bayes bound",
}


def draw(setting: Setting) -> Plate:
    """Make figure 10."""
    half, alpha = Ensemble(eta=0.0, gamma=10.0), 5.0
    alphas = np.geomspace(0.5, 50.0, setting.pick(40, 20, 3))
    fractions = np.concatenate([np.linspace(0.0, 0.9, setting.pick(19, 10, 3)), [0.93, 0.96]])
    crowd = [Ensemble.from_contamination(float(f), gamma=10.0) for f in fractions]
    strengths = np.geomspace(0.01, 100.0, setting.pick(41, 21, 3))

    book = Book()
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharey=True)
    a, b, c = Panel(left, "a", book), Panel(middle, "b", book), Panel(right, "c", book)
    for name, loss in LOSSES.items():
        plain = theory.EmpiricalRisk(loss, 1.0)
        style: dict[str, Any] = {"learner": name, "linewidth": 1.2}
        a.curve(alphas, _angles(theory.learning_curve(plain, half, alphas)), label=_NAMES[name], **style)
        b.curve(fractions, _angles(theory.solve(plain, e, alpha) for e in crowd), **style)
        over = [theory.solve(theory.EmpiricalRisk(loss, float(x)), half, alpha) for x in strengths]
        c.curve(strengths, _angles(over), **style)
    for name in ("hebb", "hard", "soft", "bayes"):
        learner = THEORY["amp" if name == "bayes" else name]
        look: dict[str, Any] = {"learner": name, "kind": "bound" if name == "bayes" else "equilibrium"}
        a.curve(alphas, _angles(theory.learning_curve(learner, half, alphas)), label=_NAMES[name], **look)
        b.curve(fractions, _angles(theory.solve(learner, e, alpha) for e in crowd), **look)
        level = theory.solve(learner, half, alpha).angle
        c.curve(strengths[[0, -1]], [level, level], **look)
    n, runs = setting.pick(300, 150, 30), setting.pick(30, 10, 3)
    compared = []
    for name, fit in _FITS.items():
        for strength in (0.1, 1.0, 10.0):
            values = _runs(fit, half, n, alpha, strength, runs, setting.seed)
            error = float(values.std(ddof=1) / math.sqrt(runs))
            exact = theory.solve(theory.EmpiricalRisk(LOSSES[name], strength), half, alpha).angle
            compared.append((name, strength, float(values.mean()), error, exact))
            places = [(c, strength)] + ([(a, alpha), (b, half.outlier_fraction)] if strength == 1.0 else [])
            for panel, x in places:
                panel.runs(
                    [x],
                    [values.mean()],
                    deviation=[values.std(ddof=1)],
                    error=[error],
                    count=runs,
                    learner=name,
                    series=f"{name}, runs, λ = {strength:g}",
                )
    left.set_xscale("log")
    left.xaxis.set_major_formatter("{x:g}")
    left.set(xlabel="α = P/N", ylabel="Φ", ylim=(0.0, 0.5))
    left.set_title("(a) half outliers, λ = 1")
    middle.set(xlabel="outlier fraction", xlim=(0.0, 1.0))
    middle.set_title(f"(b) α = {alpha:g}, λ = 1")
    right.set_xscale("log")
    right.set(xlabel="regularisation λ")
    right.set_title(f"(c) α = {alpha:g}, half outliers")
    left.errorbar([], [], yerr=[], fmt="o", color="0.4", markerfacecolor="white", label=f"runs, N = {n}")
    legend_below(figure, left, 5)
    good = sum(abs(mean - exact) <= 3.0 * error for _, _, mean, error, exact in compared)
    at_one = {
        name: theory.solve(theory.EmpiricalRisk(loss, 1.0), half, alpha).angle
        for name, loss in LOSSES.items()
    }
    best = min(at_one, key=at_one.__getitem__)
    own = {name: theory.solve(THEORY[name], half, alpha).angle for name in ("soft", "hebb")}
    return Plate(
        name="fig10",
        title="Every peer loss on the same axes",
        caption="Direction error of regularised classifiers without intercept, beside selection and the "
        "Bayes bound, γ = 10. The penalty is λ|J|²/2 (scikit-learn: C = 1/(λN)); selection has no "
        f"parameter to tune. Circles: scikit-learn's estimators (Huber: L-BFGS), N = {n}, {runs} runs; "
        "bars: standard deviations over runs.",
        figure=figure,
        book=book,
        table=[
            {
                "loss": _NAMES[name],
                "λ": strength,
                "Φ theory": round(exact, 5),
                "Φ runs": f"{mean:.5f} ± {error:.5f}",
                "standard errors": round((mean - exact) / error, 2),
            }
            for name, strength, mean, error, exact in compared
        ],
        findings=[
            f"{good} of {len(compared)} points of these estimators lie within three standard errors of the "
            "exact theory of their loss.",
            f"At α = {alpha:g} with half outliers the best of the plain losses at λ = 1 ({_NAMES[best]}) "
            f"reaches Φ = {at_one[best]:.4f}, the Hebb rule {own['hebb']:.4f}, soft selection "
            f"{own['soft']:.4f}.",
            "As λ grows every plain loss becomes the Hebb rule in direction, and that is where each is "
            "best or nearly so: it is the selection that helps, no loss of the margin does.",
        ],
    )


def _angles(points: Iterable[theory.SaddlePoint]) -> list[float]:
    return [s.angle for s in points]


def _logistic(X: Array, y: Array, penalty: float) -> Array:
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(C=1.0 / penalty, fit_intercept=False, tol=1e-8, max_iter=1000).fit(X, y)
    return np.asarray(fit.coef_[0])


def _hinge(X: Array, y: Array, penalty: float) -> Array:
    from sklearn.svm import LinearSVC

    fit = LinearSVC(C=1.0 / penalty, loss="hinge", fit_intercept=False, max_iter=200_000, random_state=0)
    return np.asarray(fit.fit(X, y).coef_[0])


def _squared_hinge(X: Array, y: Array, penalty: float) -> Array:
    from sklearn.svm import LinearSVC

    # scikit-learn's squared hinge has no factor 1/2
    fit = LinearSVC(C=0.5 / penalty, fit_intercept=False, dual=False, tol=1e-8, max_iter=10_000)
    return np.asarray(fit.fit(X, y).coef_[0])


def _square(X: Array, y: Array, penalty: float) -> Array:
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=penalty, fit_intercept=False).fit(X, y).coef_)


def _huber(X: Array, y: Array, penalty: float) -> Array:
    """Minimised here: scikit-learn's HuberRegressor fits the scale of the residuals along with the line."""
    folded, loss = y[:, None] * X, LOSSES["huber"]

    def energy(w: Array) -> tuple[float, Array]:
        u = folded @ w
        slope = -np.clip(1.0 - u, -loss.delta, loss.delta)
        return float(loss.value(u).sum() + 0.5 * penalty * w @ w), slope @ folded + penalty * w

    found = minimize(energy, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
    return np.asarray(found.x)


_FITS: dict[str, Callable[[Array, Array, float], Array]] = {
    "logistic": _logistic,
    "hinge": _hinge,
    "square": _square,
    "squared hinge": _squared_hinge,
    "huber": _huber,
}


def _runs(
    fit: Callable[[Array, Array, float], Array],
    e: Ensemble,
    n: int,
    alpha: float,
    strength: float,
    runs: int,
    seed: int,
) -> Array:
    """Φ of an estimator in independent runs; λ|J|²/2 with J = √N w is λN|w|²/2."""
    out = []
    for run in range(runs):
        data = sample(e, n, round(alpha * n), np.random.default_rng([seed, n, run]))
        w = fit(data.X, data.y.astype(np.float64), strength * n)
        R, Q = overlaps(w, data.center)
        out.append(float(angle(R, Q)))
    return np.array(out)
