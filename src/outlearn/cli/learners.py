"""The theory's learners by the names used on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from outlearn.exceptions import ParameterError

__all__ = ["LEARNERS", "Beta", "LearnerNames", "Regularization", "ensemble", "learner", "several"]

_LOSSES = {
    "square": "Square",
    "logistic": "Logistic",
    "hinge": "Hinge",
    "squared-hinge": "SquaredHinge",
    "huber": "Huber",
}

LEARNERS = ("soft", "soft-printed", "hard", "hard-printed", "hebb", "bayes", "gibbs", *_LOSSES)

LearnerNames = Annotated[
    list[str],
    typer.Option("--learner", "-L", help=f"One of {', '.join(LEARNERS)}; may be given more than once."),
]
Beta = Annotated[
    float | None, typer.Option(help="Inverse temperature of the learner gibbs; 1 when left out.")
]
Regularization = Annotated[
    float | None, typer.Option(help="L2 penalty of the plain losses (square, ...); 1 when left out.")
]


def learner(name: str, beta: float = 1.0, regularization: float = 1.0) -> Any:
    """Return the learner called ``name``."""
    from outlearn import theory
    from outlearn.theory.gibbs import Gibbs

    makers: dict[str, Callable[[], Any]] = {
        "soft": lambda: theory.SoftSelection(),
        "soft-printed": lambda: theory.SoftSelection(equations="printed"),
        "hard": lambda: theory.HardSelection(),
        "hard-printed": lambda: theory.HardSelection(equations="printed"),
        "hebb": lambda: theory.Hebb(),
        "bayes": lambda: theory.BayesOptimal(),
        "gibbs": lambda: Gibbs(beta=beta),
    }
    if name in makers:
        return makers[name]()
    if name in _LOSSES:
        return theory.EmpiricalRisk(getattr(theory, _LOSSES[name])(), regularization)
    raise ParameterError("learner", name, f"one of {', '.join(LEARNERS)}")


def several(names: list[str], beta: float | None, regularization: float | None) -> dict[str, Any]:
    """Return the learners of these names; refuse options that none of them has."""
    if beta is not None and "gibbs" not in names:
        raise ParameterError("beta", beta, "the learner gibbs to go with it")
    if regularization is not None and not set(names) & set(_LOSSES):
        raise ParameterError("regularization", regularization, f"one of {', '.join(_LOSSES)} to go with it")
    temperature, penalty = (1.0 if x is None else x for x in (beta, regularization))
    return {name: learner(name, temperature, penalty) for name in names}


def ensemble(gamma: float, eta: float | None, contamination: float | None) -> Any:
    """Build the ensemble from η, or from the outlier fraction; one of the two must be given."""
    from outlearn.model import Ensemble

    if (eta is None) == (contamination is None):
        raise typer.BadParameter("give either --eta or --contamination")
    if contamination is not None:
        return Ensemble.from_contamination(contamination, gamma=gamma)
    return Ensemble(eta, gamma)  # type: ignore[arg-type]
