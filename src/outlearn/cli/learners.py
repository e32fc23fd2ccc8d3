"""The theory's learners by the names used on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from outlearn.exceptions import ParameterError

__all__ = ["LEARNERS", "Beta", "LearnerNames", "Regularization", "ensemble", "learner"]

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
Beta = Annotated[float, typer.Option(help="Inverse temperature of the learner gibbs.")]
Regularization = Annotated[
    float, typer.Option(help="L2 penalty of the plain losses (square, logistic, ...).")
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


def ensemble(gamma: float, eta: float | None, contamination: float | None) -> Any:
    """Build the ensemble from η, or from the outlier fraction; one of the two must be given."""
    from outlearn.model import Ensemble

    if (eta is None) == (contamination is None):
        raise typer.BadParameter("give either --eta or --contamination")
    if contamination is not None:
        return Ensemble.from_contamination(contamination, gamma=gamma)
    return Ensemble(eta, gamma)  # type: ignore[arg-type]
