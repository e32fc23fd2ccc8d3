"""``outlearn results``: what campaigns have kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from outlearn.cli.options import AsJson
from outlearn.cli.output import atomic, check_writable, print_json, print_table, say

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    help="List, export and check the results of campaigns.\n\n"
    "\b\nExamples:\n  outlearn results list runs.sqlite\n"
    "  outlearn results export runs.sqlite -o runs.parquet\n"
    "  outlearn results scaling runs.sqlite --estimator variance\n"
    "  outlearn results check runs.sqlite",
)

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="A file that `outlearn simulate` keeps.")]


@app.command("list")
def list_(store: StoreFile, as_json: AsJson = False) -> None:
    """List every task of a store with its statistics.

    \b
    Example:
      outlearn results list runs.sqlite
    """
    from outlearn.cli.simulate import COLUMNS, campaign_rows
    from outlearn.simulation import Store

    with Store(store, create=False) as opened:
        kept = [(seed, task, opened.stats(seed, task)) for seed, task, _ in opened.tasks()]
    if as_json:
        print_json([{"seed": seed, **task.to_dict(), **stats.to_dict()} for seed, task, stats in kept])
        return
    rows = campaign_rows((task, stats) for _, task, stats in kept)
    print_table(
        ("seed", *COLUMNS),
        [(seed, *row) for (seed, *_), row in zip(kept, rows, strict=True)],
        title=str(store),
    )


@app.command()
def export(
    store: StoreFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .csv or .parquet.")],
    summary: Annotated[
        bool, typer.Option("--summary", help="One row a task with its statistics, in place of one row a run.")
    ] = False,
) -> None:
    """Write the runs of a store as CSV or Parquet, one row a run.

    \b
    Examples:
      outlearn results export runs.sqlite -o runs.csv
      outlearn results export runs.sqlite -o table.parquet --summary
    """
    from outlearn.exceptions import DataError
    from outlearn.simulation import Store

    check_writable(output)
    if output.resolve() == store.resolve():
        raise DataError(f"{output}: is the store, which the table would replace")
    if output.suffix.lower() not in Store.EXPORTS:
        raise DataError(f"{output}: the ending must be {' or '.join(Store.EXPORTS)}")
    with Store(store, create=False) as opened, atomic(output) as temporary:
        count = opened.export(temporary, each_run=not summary)
    say(f"{count} rows written to {output}")


@app.command()
def scaling(
    store: StoreFile,
    estimator: Annotated[
        list[str],
        typer.Option(
            help="How the transition is located: broadening, binder or variance; all when left out."
        ),
    ] = [],  # noqa: B006  # typer copies it
    exponent: Annotated[float, typer.Option(help="The informative fraction is linear in N^-EXPONENT.")] = 1.0,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the campaign, where the store has several.")
    ] = None,
    learner: Annotated[
        str | None, typer.Option("--learner", "-L", help="Use the runs of this learner.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Locate the transition at every size and extrapolate it to infinite size.

    The store must hold one learner at several sizes and several eta; --learner and --seed choose among
    more. Intervals are 95 % of the bootstrap over runs.

    \b
    Example:
      outlearn results scaling runs.sqlite --estimator variance --estimator binder
    """
    from outlearn.simulation import Store
    from outlearn.simulation.scaling import ESTIMATORS, finite_size_scaling

    with Store(store, create=False) as opened:
        pairs = [
            (task, opened.stats(own, task))
            for own, task, _ in opened.tasks()
            if (seed is None or own == seed) and (learner is None or task.learner == learner)
        ]
    found = [finite_size_scaling(pairs, name, exponent=exponent) for name in estimator or ESTIMATORS]
    if as_json:
        print_json(found)
        return
    rows: list[tuple[Any, ...]] = []
    for one in found:
        rows += [
            (one.estimator, o.n_features, o.eta, o.low, o.high, o.informative_fraction) for o in one.onsets
        ]
        rows.append((one.estimator, float("inf"), one.eta, one.low, one.high, one.informative_fraction))
    print_table(
        ("estimator", "N", "eta", "low", "high", "informative"), rows, title="where the transition is"
    )


@app.command()
def check(store: StoreFile, as_json: AsJson = False) -> None:
    """Read every row of a store and check it; a damaged or foreign file is refused.

    \b
    Example:
      outlearn results check runs.sqlite
    """
    from outlearn.simulation import Store

    with Store(store, create=False) as opened:
        tasks = opened.tasks()
        failed = sum(opened.stats(seed, task).n_failed for seed, task, _ in tasks)
    runs = sum(count for *_, count in tasks)
    if as_json:
        print_json({"store": str(store), "tasks": len(tasks), "runs": runs, "failed": failed, "sound": True})
    else:
        say(f"{store} is sound: {len(tasks)} tasks, {runs} runs, {failed} of them failed")
