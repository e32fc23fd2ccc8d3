import math
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC, LinearSVC

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.numerics.newton import newton
from outlearn.theory.empirical_risk import EmpiricalRisk
from outlearn.theory.losses import Hinge, Huber, Logistic, Loss, Square, SquaredHinge
from outlearn.theory.mixture import Component, contaminated
from outlearn.theory.system import Points

E = Ensemble(eta=0.5, gamma=4.0)
FOUR = contaminated(E, positive=0.8, garbage_positive=0.6)
UNLIKE = (
    Component(weight=0.3, overlap=1.0, precision=4.0, label=1),
    Component(weight=0.2, overlap=1.4, precision=2.0, label=-1),
    Component(weight=0.1, overlap=-0.5, precision=8.0, label=1),
    Component(weight=0.4, overlap=0.0, precision=1.0, label=-1),
)
LOSSES = [Square(), Logistic(), Hinge(), SquaredHinge(), Huber(0.7)]


def solve(learner, alpha, ensemble=E):
    system, points = learner.system(), Points.of(ensemble, alpha)
    starts = system.starts(points)[:, 0]
    many = points.take(np.zeros(len(starts), dtype=int))
    result = newton(lambda v, rows: system.evaluate(many.take(rows), v), starts)
    return system, points, result


def values(learner, alpha, ensemble=E):
    system, points, result = solve(learner, alpha, ensemble)
    assert result.converged[0]
    return {k: float(x[0]) for k, x in system.order_parameters(points, result.v[:1]).items()}


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("lam", [0.05, 3.0])
@pytest.mark.parametrize(
    ("components", "intercept"), [(None, False), (FOUR, True), (UNLIKE, True), (UNLIKE, False)]
)
def test_solution_is_stationary_unique_and_stable(loss, lam, components, intercept):
    learner = EmpiricalRisk(loss, lam, components, intercept)
    system, points, result = solve(learner, 3.0)
    assert result.converged.all()
    assert np.ptp(result.v, axis=0).max() < 1e-8  # every start ends at the same solution
    v = result.v[:1]
    n = v.shape[1]
    names = {k: x[0] for k, x in system.order_parameters(points, v).items()}
    R, Q, z = names["R"], names["Q"], names["z"]

    def f(R, Q, z, c):
        w = [math.asinh(R / math.sqrt(Q - R * R)), math.log(Q - R * R), math.log(z), c][:n]
        return system.free_energy(points, np.array([w]))[0]

    at = np.array([R, Q, z, names["intercept"]])
    for i in range(4 if intercept else 3):
        h = 1e-5 * max(at[i], 0.1) * np.eye(4)[i]
        slope = (f(*(at + h)) - f(*(at - h))) / (2 * h[i])
        assert slope == pytest.approx(0.0, abs=2e-7)
        moved = 1.05 * at
        assert abs((f(*(moved + h)) - f(*(moved - h))) / (2 * h[i])) > 1e-5
    assert system.at_eigenvalue(points, v)[0] < 1.0
    assert system.quadrature_error(points, v)[0] < 1e-12
    h = 1e-6
    numerical = np.stack(
        [
            (system.residual(points, v + h * u) - system.residual(points, v - h * u))[0] / (2 * h)
            for u in np.eye(n)
        ],
        1,
    )
    np.testing.assert_allclose(system.jacobian(points, v)[0], numerical, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 8.0])
@pytest.mark.parametrize("lam", [0.1, 2.0])
def test_least_squares_equals_ridge_regression_theory(alpha, lam):
    """Ridge in closed form: the trace z of the resolvent and its derivative z2, by one quadratic equation."""
    got = values(EmpiricalRisk(Square(), lam), alpha)
    gamma, p1 = E.gamma, E.informative_fraction
    # m(λ): trace of the resolvent of the noise covariance α W/γ, by its quadratic equation
    z = np.roots([lam, lam * gamma + alpha - 1.0, -gamma]).max()
    assert got["z"] == pytest.approx(z, rel=1e-10)
    # derivative -dz/dλ = trace of the squared resolvent, by differentiating the quadratic
    z2 = (z * z + gamma * z) / (2 * lam * z + lam * gamma + alpha - 1.0)
    kappa = alpha * gamma * z / (gamma + z)
    R = kappa * p1 / (1 + kappa * p1)
    assert got["R"] == pytest.approx(R, rel=1e-10)
    second = p1 * (1 - R) ** 2 + (1 - p1)
    # Q - R² = τ (second + Q/γ) with τ = α γ z²/(γ + z)²
    tau = alpha * gamma * z * z / (gamma + z) ** 2
    assert z2 == pytest.approx(z * z / (1 - tau / gamma), rel=1e-10)  # the trace identity behind tau
    Q = (R * R + tau * second) / (1 - tau / gamma)
    assert got["Q"] == pytest.approx(Q, rel=1e-10)


def draw(components, n, p, rng):
    """Inputs and labels of a mixture, in the paper's scale, with the direction of its centre."""
    B = rng.standard_normal(n)
    b = B / np.linalg.norm(B)
    k = rng.choice(len(components), size=p, p=[c.weight for c in components])
    label = np.array([c.label for c in components])[k]
    shift = label * np.array([c.overlap for c in components])[k]
    noise = 1 / np.sqrt(np.array([c.precision for c in components]))[k]
    return shift[:, None] * b + noise[:, None] * rng.standard_normal((p, n)), label, b


def peers(lam, n):
    """scikit-learn's estimators in the scale of the theory."""
    C = 1.0 / (lam * n)
    return {
        "logistic": (
            Logistic(),
            lambda ic: LogisticRegression(C=C, fit_intercept=ic, tol=1e-8, max_iter=1000),
        ),
        "ridge": (Square(), lambda ic: RidgeClassifier(alpha=lam * n, fit_intercept=ic)),
        "hinge": (Hinge(), lambda ic: SVC(kernel="linear", C=C, tol=1e-5)),
        "squared": (
            SquaredHinge(),
            lambda ic: LinearSVC(loss="squared_hinge", C=C / 2, fit_intercept=ic, tol=1e-8, max_iter=20000),
        ),
    }


@pytest.mark.parametrize(
    ("name", "components", "intercept"),
    [
        ("logistic", contaminated(E), False),
        ("logistic", FOUR, True),
        ("logistic", UNLIKE, True),
        ("ridge", contaminated(E), False),
        ("ridge", FOUR, True),
        ("squared", FOUR, False),
        ("hinge", FOUR, True),
    ],
)
def test_scikit_learn_reaches_what_the_theory_says(name, components, intercept):
    n, alpha, lam, runs = 250, 3.0, 0.3, 12
    loss, make = peers(lam, n)[name]
    theory = values(EmpiricalRisk(loss, lam, components, intercept), alpha)
    seen = np.empty((runs, 3))
    for k in range(runs):
        X, y, b = draw(components, n, int(alpha * n), np.random.default_rng([7, k]))
        model = make(intercept).fit(X, y)
        w = model.coef_.ravel()
        seen[k] = w @ b, w @ w, float(np.ravel(model.intercept_)[0])
    mean, error = seen.mean(axis=0), seen.std(axis=0, ddof=1) / math.sqrt(runs)
    expected = np.array([theory["R"], theory["Q"], theory["intercept"]])
    assert (np.abs(mean - expected)[: 3 if intercept else 2] < 3 * error[: 3 if intercept else 2]).all(), (
        mean,
        expected,
        error,
    )
    wrong = values(EmpiricalRisk(loss, 1.3 * lam, components, intercept), alpha)
    assert abs(mean[1] - wrong["Q"]) > 3 * error[1]  # another scaling of the penalty would be seen


def test_labels_do_not_matter_without_an_intercept_and_balance_removes_it():
    folded = values(EmpiricalRisk(Logistic(), 0.5), 3.0)
    unfolded = values(EmpiricalRisk(Logistic(), 0.5, FOUR), 3.0)
    balanced = values(EmpiricalRisk(Logistic(), 0.5, contaminated(E), intercept=True), 3.0)
    for name in ("R", "Q", "z"):
        assert folded[name] == pytest.approx(unfolded[name], rel=1e-11)
        assert folded[name] == pytest.approx(balanced[name], rel=1e-11)
    assert balanced["intercept"] == pytest.approx(0.0, abs=1e-12)


def test_error_on_the_mixture_is_the_weighted_tail():
    got = values(EmpiricalRisk(Logistic(), 0.5, FOUR, intercept=True), 3.0)
    rng = np.random.default_rng(0)
    error, size = 0.0, 400_000
    for c in FOUR:
        margin = c.label * (
            c.label * c.overlap * got["R"]
            + math.sqrt(got["Q"] / c.precision) * rng.standard_normal(size)
            + got["intercept"]
        )
        error += c.weight * (margin < 0).mean()
    assert got["mixture_error"] == pytest.approx(error, abs=3e-3)


@dataclass(frozen=True)
class OwnHinge(Loss):
    def value(self, u):
        return np.maximum(0.0, 1.0 - u)

    def prox(self, w, t):
        return np.maximum(w, np.minimum(w + t, 1.0))


@dataclass(frozen=True)
class OwnSmooth(Loss):
    """The square loss, as a user would write it."""

    def value(self, u):
        return 0.5 * (1 - u) ** 2

    def prox(self, w, t):
        return (w + t) / (1 + t)


@pytest.mark.parametrize(
    ("own", "built", "accuracy"), [(OwnHinge(), Hinge(), 1e-4), (OwnSmooth(), Square(), 1e-9)]
)
def test_a_loss_of_ones_own_needs_value_and_prox_only(own, built, accuracy):
    a, b = (values(EmpiricalRisk(x, 0.5, FOUR, intercept=True), 3.0) for x in (own, built))
    for name in ("R", "Q", "z", "intercept"):
        assert a[name] == pytest.approx(b[name], abs=accuracy)
    system, points, result = solve(EmpiricalRisk(own, 0.5, FOUR, intercept=True), 3.0)
    error = system.quadrature_error(points, result.v[:1])[0]
    assert abs(a["R"] - b["R"]) < max(30 * error, 1e-9)  # the error it states is real


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_limit_is_what_many_examples_give(loss, intercept):
    learner = EmpiricalRisk(loss, 1.0, FOUR, intercept)
    limit = learner.limit(E)
    assert limit.status.ok
    alpha = 1e6
    got, before = values(learner, alpha), values(learner, alpha / 10)
    assert got["R"] == pytest.approx(limit.R_inf, rel=3e-5)
    assert (before["R"] - limit.R_inf) / (got["R"] - limit.R_inf) == pytest.approx(10.0, rel=0.02)  # 1/α
    assert alpha * (got["Q"] - got["R"] ** 2) == pytest.approx(limit.c, rel=1e-4)
    system, points, result = solve(learner, alpha)
    assert system.free_energy(points, result.v[:1])[0] / alpha == pytest.approx(limit.energy, rel=1e-4)


@pytest.mark.parametrize("alpha", [1e-3, 1e7])
@pytest.mark.parametrize("eta", [-40.0, 0.0, 40.0])
@pytest.mark.parametrize("gamma", [1e-3, 1e4])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_extreme_parameters_converge(alpha, eta, gamma, loss):
    system, points, result = solve(EmpiricalRisk(loss, 1.0), alpha, Ensemble(eta, gamma))
    best = np.argmin(result.residual)
    assert result.converged[best]
    v = result.v[best : best + 1]
    assert all(np.isfinite(x).all() for x in system.order_parameters(points, v).values())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((Square(), 0.0), "regularization"),
        ((Square(), -1.0), "regularization"),
        ((Square(), math.nan), "regularization"),
        (("logistic", 1.0), "loss"),
        ((Square(), 1.0, ()), "components"),
        ((Square(), 1.0, (Component(weight=0.4, overlap=1.0, precision=1.0),)), "weights that sum to 0.4"),
        ((Square(), 1.0, None, True), "contaminated"),
        ((Square(), 1.0, (Component(weight=1.0, overlap=1.0, precision=1.0),), True), "both labels"),
    ],
)
def test_bad_learners_are_named(arguments, named):
    with pytest.raises(ParameterError, match=named):
        EmpiricalRisk(*arguments)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"weight": 1.5}, "weight"),
        ({"overlap": math.inf}, "overlap"),
        ({"precision": 0.0}, "precision"),
        ({"label": 0}, "label"),
    ],
)
def test_bad_components_are_named(change, named):
    with pytest.raises(ParameterError, match=named):
        Component(**({"weight": 0.5, "overlap": 1.0, "precision": 1.0} | change))
    with pytest.raises(ParameterError, match="positive"):
        contaminated(E, positive=1.1)
