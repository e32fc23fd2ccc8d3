"""``outlearn inspect``: examples ranked by doubt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outlearn.cli.options import AsJson, Contamination, DropMissing, Estimator, LabelColumn, Seed, Source
from outlearn.cli.output import atomic, check_writable, print_json, print_table, say
from outlearn.exceptions import DataError, ParameterError

__all__ = ["inspect"]


def inspect(
    data: Source,
    label: LabelColumn,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="A saved model; without it one is fitted to this table."),
    ] = None,
    top: Annotated[int, typer.Option(help="How many examples to show; 0 shows all.", min=0)] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for the whole ranking.")
    ] = None,
    learner: Annotated[
        Estimator | None, typer.Option(help="Which classifier, without --model; auto if left out.")
    ] = None,
    contamination: Contamination = "auto",
    drop_missing: DropMissing = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Rank the examples of a labelled table by how doubtful they are, most doubtful first.

    Doubt is the probability that an example carries no information, or the wrong label: one minus its inlier
    probability. The prediction beside the label tells a wrong label from an input that fits no class.

    \b
    Examples:
      outlearn inspect data.csv --label y --top 30
      outlearn inspect data.csv --label y --model model -o ranking.csv
    """
    import numpy as np
    import pandas as pd

    from outlearn import estimators
    from outlearn.cli.fit import learn
    from outlearn.practice.tables import read_table

    if output is not None:
        check_writable(output)
    if model is not None and (learner is not None or contamination != "auto"):
        raise ParameterError("model", str(model), "without --learner and --contamination, which it brings")
    if model is None:
        table = read_table(data, label=label, drop_missing=drop_missing, drop_constant=True)
        classifier = learn(learner or Estimator.auto, table, seed, contamination, "auto", "auto")
        inlier = classifier.inlier_proba_
    else:
        classifier = estimators.load(model)
        names = getattr(classifier, "feature_names_in_", None)
        table = read_table(data, label=label, columns=names, drop_missing=drop_missing)
        unknown = set(np.unique(np.asarray(table.y))) - set(classifier.classes_)
        if unknown:
            first = sorted(str(name) for name in unknown)[0]
            known = ", ".join(str(name) for name in classifier.classes_)
            raise DataError(f"{table.source}: the label {label!r} holds {first!r}; the model knows {known}")
        inlier = classifier.inlier_proba(table.X, table.y)
    for notice in table.notices:
        say(notice)
    ranking = pd.DataFrame(
        {
            "row": table.X.index,
            "doubt": 1.0 - np.asarray(inlier),
            "label": table.y,
            "prediction": classifier.predict(table.X),
        }
    ).sort_values("doubt", ascending=False, kind="stable", ignore_index=True)
    if output is not None:
        with atomic(output) as temporary:
            ranking.to_csv(temporary, index=False)
        say(f"{len(ranking)} examples ranked in {output}")
    shown = ranking if top == 0 else ranking.head(top)
    doubtful = int((ranking["doubt"] > 0.5).sum())
    if as_json:
        rows = shown.to_dict(orient="records")
        print_json({"n_samples": len(ranking), "more_likely_garbage_than_not": doubtful, "examples": rows})
    else:
        print_table(list(shown), shown.to_numpy(dtype=object).tolist(), title="most doubtful examples first")
        say(f"{doubtful} of {len(ranking)} examples are more likely garbage than not")
