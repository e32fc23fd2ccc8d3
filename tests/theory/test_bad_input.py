"""Whatever is wrong with an argument, the error names it, its value and what is permitted."""

import numpy as np
import pytest

from outlearn import theory
from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.theory.bayes import bound
from outlearn.theory.claims import hard_onset

SOFT = theory.SoftSelection()
E = Ensemble(eta=0.0, gamma=10.0)
SQUARE = theory.Square()

NO_NUMBERS = ["x", "1", b"1", np.nan, True, [], [1.0], np.array([1.0, 2.0]), np.array([]), 1j, {}, object()]
NOT_ABOVE_ZERO = [*NO_NUMBERS, np.inf, -np.inf, -1.0, 0.0]
NO_ROWS = ["x", "1", ["1", "2"], [True, False], [1.0, np.nan], [[1.0, 2.0]], [], np.array([]), True, 1j, None]
NO_WORDS = ["x", 1, None, True, ["exact"], np.array([1.0, 2.0])]


@pytest.mark.parametrize(
    ("name", "call", "silly"),
    [
        ("alpha", lambda v: theory.solve(SOFT, E, v), NOT_ABOVE_ZERO),
        ("alpha", lambda v: theory.branches(SOFT, E, v), NOT_ABOVE_ZERO),
        ("alpha", lambda v: theory.follow(SOFT, E, v, start=0, stop=1), NOT_ABOVE_ZERO),
        ("alpha", lambda v: theory.transitions(SOFT, E, v, between=(0, 1)), NOT_ABOVE_ZERO),
        ("alpha", lambda v: theory.state_evolution(E, v), NOT_ABOVE_ZERO),
        ("alpha", lambda v: theory.limit(SOFT, E).order_parameters(v), NOT_ABOVE_ZERO),
        ("alpha", lambda v: theory.limit(SOFT, E).angle(v), NO_ROWS),
        ("alphas", lambda v: theory.learning_curve(SOFT, E, v), NO_ROWS),
        ("alphas", lambda v: theory.phase_diagram(SOFT, gamma=1, alphas=v, etas=[0]), [*NO_ROWS, [2, 1]]),
        ("alphas", lambda v: bound(v, [0.0], 1.0), NO_ROWS),
        ("etas", lambda v: theory.phase_diagram(SOFT, gamma=1, alphas=[1], etas=v), [*NO_ROWS, [2, 1]]),
        ("etas", lambda v: bound([1.0], v, 1.0), NO_ROWS),
        ("etas", lambda v: theory.hard_phase(v, 10.0), NO_ROWS),
        ("start", lambda v: theory.follow(SOFT, E, 1, start=v, stop=1), [*NO_NUMBERS, np.inf, None]),
        ("stop", lambda v: theory.follow(SOFT, E, over="alpha", start=1, stop=v), NOT_ABOVE_ZERO),
        ("max_step", lambda v: theory.follow(SOFT, E, 1, start=0, stop=1, max_step=v), NOT_ABOVE_ZERO),
        (
            "between",
            lambda v: theory.transitions(SOFT, E, 1, between=v),
            [*NO_ROWS, (1, 0), (1, 1), (0, np.inf), (0, 1, 2), (0,), ("0", "1"), "01", (True, 2), (None, 1)],
        ),
        ("gamma", lambda v: theory.phase_diagram(SOFT, gamma=v, alphas=[1], etas=[0]), NOT_ABOVE_ZERO),
        ("gamma", lambda v: theory.thresholds(1.0, v), NOT_ABOVE_ZERO),
        ("gamma", lambda v: theory.critical_eta(v), NOT_ABOVE_ZERO),
        ("gamma", lambda v: hard_onset(v), NOT_ABOVE_ZERO),
        ("gamma_tilde", lambda v: hard_onset(1.0, v), NOT_ABOVE_ZERO),
        ("beta", lambda v: theory.Gibbs(v), [*NOT_ABOVE_ZERO, 0.5]),
        ("delta", lambda v: theory.Huber(v), NOT_ABOVE_ZERO),
        ("regularization", lambda v: theory.EmpiricalRisk(SQUARE, v), NOT_ABOVE_ZERO),
        ("components", lambda v: theory.EmpiricalRisk(SQUARE, 1.0, v), [1.0, "x", [], [1.0], np.nan, True]),
        ("intercept", lambda v: theory.EmpiricalRisk(SQUARE, 1.0, None, v), [1, "yes", None, []]),
        ("loss", lambda v: theory.EmpiricalRisk(v, 1.0), [theory.Square, "square", None, 1.0]),
        ("weight", lambda v: theory.Component(weight=v, overlap=1, precision=1), [*NO_NUMBERS, -0.1, 1.1]),
        ("overlap", lambda v: theory.Component(weight=1, overlap=v, precision=1), [*NO_NUMBERS, np.inf]),
        ("precision", lambda v: theory.Component(weight=1, overlap=1, precision=v), NOT_ABOVE_ZERO),
        ("label", lambda v: theory.Component(weight=1, overlap=1, precision=1, label=v), [*NO_NUMBERS, 0, 2]),
        ("positive", lambda v: theory.contaminated(E, v), [*NO_NUMBERS, -0.1, 1.1, None]),
        ("garbage_positive", lambda v: theory.contaminated(E, 0.5, v), [*NO_NUMBERS, -0.1, 1.1]),
        ("ensemble", lambda v: theory.contaminated(v), [None, 1.0, "x", (0.0, 10.0)]),
        ("ensemble", lambda v: theory.limit(SOFT, v), [None, 1.0, "x", (0.0, 10.0)]),
        ("equations", lambda v: theory.SoftSelection(v), NO_WORDS),
        ("equations", lambda v: theory.HardSelection(v), NO_WORDS),
        ("equations", lambda v: theory.critical_eta(1.0, v), NO_WORDS),
        ("equations", lambda v: hard_onset(1.0, equations=v), NO_WORDS),
        ("branch", lambda v: theory.solve(SOFT, E, 1, branch=v), NO_WORDS),
        ("branch", lambda v: theory.learning_curve(SOFT, E, [1], branch=v), NO_WORDS),
        ("branch", lambda v: theory.follow(SOFT, E, 1, start=0, stop=1, branch=v), NO_WORDS),
        ("over", lambda v: theory.follow(SOFT, E, 1, start=0, stop=1, over=v), NO_WORDS),
        ("over", lambda v: theory.transitions(SOFT, E, 1, between=(0, 1), over=v), NO_WORDS),
        ("on_failure", lambda v: theory.solve(SOFT, E, 1, on_failure=v), NO_WORDS),
        ("thorough", lambda v: theory.branches(SOFT, E, 1, thorough=v), [1, "yes", None, []]),
        ("tol", lambda v: theory.state_evolution(E, 1.0, tol=v), NOT_ABOVE_ZERO),
        ("n_iter", lambda v: theory.state_evolution(E, 1.0, n_iter=v), [0, -1, 1.5, True, "3", [], np.nan]),
        ("start", lambda v: theory.state_evolution(E, 1.0, start=v), [*NO_NUMBERS, 1.1, -0.1, None]),
    ],
)
def test_whatever_is_wrong_is_named(name, call, silly):
    for value in silly:
        with pytest.raises(ParameterError) as caught:
            call(value)
        assert caught.value.name == name, value
        assert caught.value.permitted
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: theory.follow(SOFT, E, 20, over="beta", start=0, stop=1), "over"),
        (lambda: theory.follow(SOFT, E, 20, over="eta", start=1, stop=1), "start"),
        (lambda: theory.transitions(SOFT, E, 20, over="eta", between=(5, 1)), "between"),
        (lambda: theory.transitions(SOFT, E, 20, over="alpha", between=(-5, 1)), "between"),
        (lambda: theory.transitions(SOFT, E, 20, over="eta", between=(5,)), "between"),
        (lambda: theory.transitions(SOFT, E, 20, over="eta", between=None), "between"),
        (lambda: theory.follow(SOFT, E, 20, over="eta", start="low", stop=1), "start"),
        (lambda: theory.follow(SOFT, E, 20, over="eta", start=0, stop=1, max_step=0), "max_step"),
        (lambda: theory.follow(SOFT, E, over="eta", start=0, stop=1), "alpha"),
        (lambda: theory.solve(SOFT, E, None), "alpha"),
        (lambda: theory.solve(SOFT, E, 1, on_failure="ignore"), "on_failure"),
        (lambda: theory.solve(theory.SoftSelection, E, 1), "learner"),
        (lambda: theory.branches("soft", E, 1), "learner"),
        (lambda: theory.limit("soft", E), "learner"),
        (lambda: theory.limit(SOFT, E).angle(0.0), "alpha"),
        (lambda: theory.solve(SOFT, (0.0, 10.0), 1), "ensemble"),
        (lambda: theory.learning_curve(SOFT, E, ["a"]), "alphas"),
        (lambda: theory.phase_diagram(SOFT, gamma=10, alphas=["a"], etas=[0, 1]), "alphas"),
        (lambda: theory.Gibbs(None), "beta"),
        (lambda: theory.Huber(None), "delta"),
        (lambda: theory.EmpiricalRisk(theory.Square(), None), "regularization"),
        (lambda: theory.thresholds("a", 10.0), "eta"),
        (lambda: theory.phase_diagram(SOFT, gamma=10, alphas=[2, 1], etas=[0, 1]), "alphas"),
        (lambda: theory.phase_diagram(SOFT, gamma=10, alphas=[1, 2], etas=[]), "etas"),
        (lambda: theory.phase_diagram(SOFT, gamma=-1, alphas=[1, 2], etas=[0, 1]), "gamma"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.name == name
