"""``outlearn fit``: learn a classifier from a labelled table and save it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from outlearn.cli.options import (
    AsJson,
    Contamination,
    DropMissing,
    Estimator,
    LabelColumn,
    Seed,
    Source,
    estimator_class,
    number_or_auto,
)
from outlearn.cli.output import check_writable, print_json, print_table, say
from outlearn.exceptions import ParameterError

__all__ = ["fit", "learn", "summary"]


def fit(
    data: Source,
    label: LabelColumn,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")],
    learner: Annotated[
        Estimator, typer.Option(help="Which classifier; auto tries all and trusts held-out labels.")
    ] = Estimator.auto,
    contamination: Contamination = "auto",
    covariance: Annotated[
        str, typer.Option(help="Shape of the noise: spherical, diag, tied, or auto to choose by evidence.")
    ] = "auto",
    label_noise: Annotated[
        str, typer.Option(help="Fraction of informative examples with a wrong label, or auto.")
    ] = "auto",
    drop_missing: DropMissing = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a classifier from contaminated data and save it.

    Numeric columns are the inputs; text columns and columns with one value are left out and named. The model
    file is plain data (no pickle) and appears only when it is complete.

    \b
    Examples:
      outlearn fit data.csv --label y -o model
      outlearn fit data.parquet --label y -o model --learner soft --covariance diag --json
      cat data.csv | outlearn fit - --label y -o model
    """
    from outlearn import estimators
    from outlearn.practice.tables import read_table

    check_writable(output)
    table = read_table(data, label=label, drop_missing=drop_missing, drop_constant=True)
    for notice in table.notices:
        say(notice)
    model = learn(learner, table, seed, contamination, covariance, label_noise)
    estimators.save(model, output)  # whole or not at all
    found = {"data": table.source, "label": label, **summary(learner, model), "model": str(output)}
    if as_json:
        print_json({**found, "left_out": dict(table.left_out), "dropped_rows": table.dropped_rows})
    else:
        rows = [(name.replace("_", " "), _text(value)) for name, value in found.items()]
        print_table(("", "found"), rows)


def learn(
    learner: Estimator, table: Any, seed: int, contamination: str, covariance: str, label_noise: str
) -> Any:
    """Build a classifier from the options it knows, and fit it to a table."""
    kind = estimator_class(learner)
    options = {
        "contamination": number_or_auto("contamination", contamination),
        "covariance": covariance,
        "label_noise": number_or_auto("label-noise", label_noise),
        "random_state": seed,
    }
    known = inspect.signature(kind).parameters
    for name, value in options.items():
        if name not in known and value != "auto":
            raise ParameterError(name, value, f"auto: the learner {learner} does not take it")
    model: Any = kind(**{name: value for name, value in options.items() if name in known})
    return model.fit(table.X, table.y)


def summary(learner: Estimator, model: Any) -> dict[str, Any]:
    """Say what a fitted classifier found, as far as this kind of classifier knows it."""
    n_samples = len(model.inlier_proba_)
    return {
        "learner": str(learner),
        "n_samples": n_samples,
        "n_features": model.n_features_in_,
        "classes": [str(c) for c in model.classes_],
        **{
            name: getattr(model, f"{name}_")
            for name in (
                "contamination",
                "label_noise",
                "winner",
                "reason",
                "covariance_structure",
                "noise_variance",
                "energy",
                "n_iter",
            )
            if isinstance(getattr(model, f"{name}_", None), int | float | str)
        },
        "informative_examples": round(float(model.inlier_proba_.sum()), 1),
        **({"status": str(model.status_)} if hasattr(model, "status_") else {}),
    }


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
