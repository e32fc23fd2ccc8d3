"""Options that several commands share, so that they read and behave alike."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from outlearn.exceptions import ParameterError

__all__ = [
    "AsJson",
    "Contamination",
    "DropMissing",
    "Estimator",
    "LabelColumn",
    "ModelFile",
    "Seed",
    "Source",
    "estimator_class",
    "number_or_auto",
]

Source = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV, Parquet or NPZ file; - reads standard input.")
]
LabelColumn = Annotated[str, typer.Option("--label", "-l", help="The column that holds the classes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values instead of refusing them.")
]
ModelFile = Annotated[Path, typer.Option("--model", "-m", help="A model that `outlearn fit` saved.")]
Seed = Annotated[int, typer.Option(help="Seed of the random starts.", min=0)]
Contamination = Annotated[
    str, typer.Option(help="Fraction of garbage, in [0, 1), or auto to learn it from the data.")
]


class Estimator(StrEnum):
    """The classifiers by the names used on the command line."""

    auto = "auto"
    soft = "soft"
    hard = "hard"
    hebb = "hebb"
    bayes = "bayes"


def estimator_class(kind: Estimator) -> type:
    """Return the class behind a name."""
    from outlearn import estimators

    names = {
        Estimator.auto: "AutoSelectionClassifier",
        Estimator.soft: "SoftSelectionClassifier",
        Estimator.hard: "HardSelectionClassifier",
        Estimator.hebb: "HebbClassifier",
        Estimator.bayes: "BayesSelectionClassifier",
    }
    found: type = getattr(estimators, names[kind])
    return found


def number_or_auto(name: str, text: str) -> float | str:
    """Read an option that is a number or the word auto.

    >>> number_or_auto("contamination", "0.5"), number_or_auto("contamination", "auto")
    (0.5, 'auto')
    """
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ParameterError(name, text, "a number, or auto") from None
