"""``outlearn simulate``: finite-size campaigns."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from outlearn.cli.options import AsJson
from outlearn.cli.output import atomic, check_writable, print_json, print_table, say
from outlearn.exceptions import ParameterError

__all__ = ["campaign_rows", "simulate", "values"]

COLUMNS = (
    *("learner", "start", "N", "alpha", "eta", "runs", "not conv."),
    *("R", "Q", "Phi", "± Phi", "Delta", "energy", "steps"),
)


def simulate(
    alpha: Annotated[
        list[str],
        typer.Option(
            "--alpha",
            "-a",
            help="Examples per dimension: a number or FROM:TO:STEP; may be given more than once.",
        ),
    ],
    n_features: Annotated[
        list[int], typer.Option("--n-features", "-n", help="Dimension N; may be given more than once.")
    ],
    eta: Annotated[
        list[str],
        typer.Option("--eta", "-e", help="η, a number or FROM:TO:STEP; outliers are 1/(1 + e^-η)."),
    ] = [],  # noqa: B006  # typer copies it
    contamination: Annotated[
        list[float], typer.Option("--contamination", "-c", help="Outlier fraction, instead of --eta.")
    ] = [],  # noqa: B006
    gamma: Annotated[
        float, typer.Option("--gamma", "-g", help="Inverse variance of the clusters, > 0.")
    ] = 10.0,
    gamma_tilde: Annotated[
        float | None, typer.Option(help="What the learner believes of gamma; the truth when left out.")
    ] = None,
    eta_tilde: Annotated[
        float | None, typer.Option(help="What the learner believes of eta; the truth when left out.")
    ] = None,
    learner: Annotated[
        list[str],
        typer.Option("--learner", "-L", help="soft, hard, hebb or amp; may be given more than once."),
    ] = ["soft"],  # noqa: B006
    start: Annotated[
        list[str],
        typer.Option(help="random, hebb, teacher, amp, soft or spectral; may be given more than once."),
    ] = ["random"],  # noqa: B006
    runs: Annotated[int, typer.Option("--runs", "-r", help="Runs of each point (at most).", min=1)] = 100,
    standard_error: Annotated[
        float | None, typer.Option(help="Stop a point when the standard error of the mean is at most this.")
    ] = None,
    quantity: Annotated[
        str | None, typer.Option("--of", help="Whose standard error: R, Q, ...; Phi when left out.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", "-s", help="File that keeps the runs, and where they go on when run again."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for the table with all statistics.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the campaign.", min=0)] = 0,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; every core when left out.", min=1)
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, to work on its cluster.")
    ] = None,
    draw: Annotated[
        str, typer.Option(help="How data are drawn: dense, matrix-free, or auto for the cheaper.")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Run finite-size campaigns: every combination of the values given, resumable.

    With --store, runs are kept as they are made: interrupt at will, run the same command again, and it
    goes on; two commands on one store share the work. The numbers depend on the seed and on nothing else.

    \b
    Examples:
      outlearn simulate --alpha 20 --eta 0:6:1 --n-features 100 --runs 100 --store runs.sqlite
      outlearn simulate -a 20 -e 2 -n 100000 --runs 5 --workers 1
      outlearn simulate -a 5 -c 0.8 -n 200 -L soft -L amp --standard-error 0.001
    """
    from outlearn.exceptions import DataError
    from outlearn.model import Ensemble
    from outlearn.simulation import Campaign, grid
    from outlearn.simulation import standard_error as until

    if bool(eta) == bool(contamination):
        raise ParameterError("eta", eta, "give either --eta or --contamination")
    if quantity is not None and standard_error is None:
        raise ParameterError("quantity", quantity, "--of goes with --standard-error")
    if scheduler is not None and workers is not None:
        raise ParameterError("workers", workers, "either --workers or --scheduler, whose cluster has its own")
    if output is not None:
        check_writable(output)
        if store is not None and output.resolve() == store.resolve():
            raise DataError(f"{output}: is the store, which the table would replace")
        if output.suffix.lower() != ".csv":
            raise DataError(f"{output}: the ending must be .csv")
    etas = [Ensemble.from_contamination(c, gamma=gamma).eta for c in contamination] or values("eta", eta)
    tasks = grid(
        learner=learner,
        start=start,
        n_features=n_features,
        alpha=values("alpha", alpha),
        eta=etas,
        gamma=gamma,
        gamma_tilde=gamma_tilde,
        eta_tilde=eta_tilde,
        runs=runs,
        draw=draw,
    )
    campaign = Campaign({task.strong_id: task for task in tasks}.values(), seed)
    rule = None if standard_error is None else until(quantity or "Phi", at_most=standard_error)
    try:
        with _progress_bar() as progress:
            result = campaign.run(
                store,
                workers=workers,
                stop_when=rule,
                cluster=scheduler,
                progress=progress,
            )
    except KeyboardInterrupt:
        if store is not None:
            say(f"what is done is kept in {store}; run the same command again to go on")
        raise
    failed = sum(stats.n_failed for _, stats in result)
    if failed:
        first = next(
            status for _, stats in result for status in stats.statuses if status.startswith("failed")
        )
        total = sum(stats.n_runs for _, stats in result)
        say(f"outlearn: warning: {failed} of {total} runs failed, the first with: {first.partition(': ')[2]}")
    if output is not None:
        with atomic(output) as temporary:
            result.to_frame().to_csv(temporary, index=False)
    if as_json:
        print_json(result)
    else:
        print_table(COLUMNS, campaign_rows(result), title=f"means over runs, gamma = {gamma:g}, seed {seed}")


def campaign_rows(pairs: Any) -> list[tuple[Any, ...]]:
    """Short rows of a table of tasks and their statistics."""
    return [
        (
            task.learner,
            task.start or "-",
            task.n_features,
            task.alpha,
            task.ensemble.eta,
            stats.n_runs,
            stats.n_runs - stats.n_converged,
            stats.R.mean,
            stats.Q.mean,
            stats.Phi.mean,
            stats.Phi.standard_error,
            stats.Delta.mean,
            stats.energy.mean,
            stats.iterations.mean,
        )
        for task, stats in pairs
    ]


def values(name: str, texts: list[str]) -> list[float]:
    """Read numbers and ranges FROM:TO:STEP, both ends included.

    >>> values("eta", ["0:1:0.5", "4", "-inf"])
    [0.0, 0.5, 1.0, 4.0, -inf]
    """
    found: list[float] = []
    for text in texts:
        try:
            parts = [float(part) for part in text.split(":")]
        except ValueError:
            parts = []
        if len(parts) == 1:
            found += parts
        elif len(parts) == 3 and parts[2] > 0.0 and 0.0 <= parts[1] - parts[0] < 1e6 * parts[2]:
            count = int((parts[1] - parts[0]) / parts[2] + 1e-9) + 1
            found += [round(parts[0] + k * parts[2], 12) for k in range(count)]
        else:
            raise ParameterError(name, text, "a number, or FROM:TO:STEP with FROM <= TO and STEP > 0")
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def _progress_bar() -> Iterator[Callable[[Any], None] | None]:
    """Show a bar with the time that is left, on a screen only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("runs", total=None, left="")

        def show(now: Any) -> None:
            known = now.remaining == now.remaining
            left = f"about {_duration(now.remaining)} left" if known else ""
            bar.update(row, completed=now.done, total=now.total, left=left)

        yield show


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
