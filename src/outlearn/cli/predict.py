"""``outlearn predict``: classify the rows of a table with a saved model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from outlearn.cli.options import AsJson, DropMissing, ModelFile, Source
from outlearn.cli.output import atomic, check_writable, print_json, say
from outlearn.exceptions import DataError

__all__ = ["predict"]


def predict(
    data: Source,
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write; standard output if left out.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", "-l", help="True classes, if the table has them: adds the accuracy."),
    ] = None,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
) -> None:
    """Classify the rows of a table with a saved model.

    Writes CSV: the row (from 1), the predicted class, and the probability of every class. Columns are found
    by the names the model was fitted with; others are passed over.

    \b
    Examples:
      outlearn predict new.csv --model model
      outlearn predict test.csv --model model --label y -o predictions.csv
    """
    import numpy as np
    import pandas as pd

    from outlearn import estimators
    from outlearn.practice.tables import read_table

    if output is not None:
        check_writable(output)
    classifier = estimators.load(model)
    names = getattr(classifier, "feature_names_in_", None)
    table = read_table(data, label=label, columns=names, drop_missing=drop_missing)
    for notice in table.notices:
        say(notice)
    found = pd.DataFrame({"row": table.X.index, "prediction": classifier.predict(table.X)})
    proba = classifier.predict_proba(table.X)
    for k, name in enumerate(classifier.classes_):
        found[f"probability of {name}"] = proba[:, k]
    accuracy = None
    if table.y is not None:
        truth = table.y.astype(str)
        strange = ~np.isin(truth, classifier.classes_.astype(str))
        if strange.all():
            raise DataError(
                f"{table.source}: the column {label!r} holds none of the model's classes "
                f"{', '.join(str(name) for name in classifier.classes_)}"
            )
        if strange.any():
            say(f"note: {strange.sum()} rows have labels in {label!r} that the model does not know")
        accuracy = float((found["prediction"].astype(str) == truth).mean())
    if output is not None:
        with atomic(output) as temporary:
            found.to_csv(temporary, index=False)
        say(f"{len(found)} predictions in {output}")
    if as_json:
        rows = found.to_dict(orient="records")
        print_json({"accuracy": accuracy, "output": output, "predictions": rows if output is None else None})
        return
    if output is None:
        found.to_csv(sys.stdout, index=False)
    if accuracy is not None:
        say(f"accuracy against {label!r}: {accuracy:.4f} of {len(found)} rows")
