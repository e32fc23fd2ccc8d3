"""Tables of what came out: for the terminal, and for the page of the documentation."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.real.cells import Outcome
from benchmarks.real.contamination import KINDS
from benchmarks.real.methods import OURS
from benchmarks.real.sets import SETS

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
CELL = ["set", "kind", "rate"]


def frame(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """One row per outcome."""
    return pd.DataFrame(
        [
            {
                "set": o.cell.set,
                "kind": o.cell.kind,
                "rate": o.cell.rate,
                "seed": o.cell.seed,
                "method": o.cell.method,
                "accuracy": np.nan if o.accuracy is None else 100 * o.accuracy,
                "balanced_accuracy": np.nan if o.balanced_accuracy is None else 100 * o.balanced_accuracy,
                "garbage_auc": np.nan if o.garbage_auc is None else o.garbage_auc,
                "seconds": o.seconds,
                "failure": o.failure,
                "code": o.fingerprint,
            }
            for o in outcomes
        ]
    )


def means(results: pd.DataFrame, value: str) -> pd.DataFrame:
    """Mean over seeds: one row per cell, one column per method (ours first). A failure spoils its mean."""
    table = results.pivot_table(
        index=CELL, columns="method", values=value, aggfunc=lambda v: v.mean(skipna=False), sort=False
    )
    first = [name for name in OURS.values() if name in table]
    table = table[first + [name for name in table if name not in first]].dropna(how="all")
    return table.sort_index(key=_order)


def mean_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Mean rank of every method (1 is best; ties share): at each rate and over all cells."""
    ranks = table.rank(axis=1, ascending=False, na_option="bottom")
    by_rate = ranks.groupby(level="rate").mean()
    by_rate.index = [f"rate {rate:g}" for rate in by_rate.index]
    return pd.concat([by_rate, ranks.mean().to_frame("all").T])


def behind_at_zero(table: pd.DataFrame) -> pd.DataFrame:
    """Points each of our methods lies behind the best rival on uncontaminated data (negative: ahead)."""
    clean = table.xs(0.0, level="rate").droplevel("kind")
    ours = [name for name in OURS.values() if name in clean]
    best = clean.drop(columns=ours).max(axis=1)
    return clean[ours].rsub(best, axis=0)


def machine() -> str:
    """What the figures were measured with."""
    packages = ("outlearn", "numpy", "scipy", "scikit-learn", "numba", "cleanlab")
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{package} not installed")
    return f"{platform.machine()}, {_processor()}, Python {platform.python_version()}, {', '.join(versions)}"


def show(results: pd.DataFrame, console: Console) -> None:
    """Print everything."""
    seeds = results["seed"].nunique()
    console.print(machine())
    accuracy = means(results, "accuracy")
    _print(console, accuracy, f"clean-test accuracy in %, mean over {seeds} seeds", "{:.1f}", index=CELL)
    auc = means(results, "garbage_auc")
    if len(auc):
        _print(console, auc, "garbage AUC", "{:.3f}", index=CELL)
    seconds = means(results, "seconds").groupby(level="set", sort=False).mean()
    _print(console, seconds, "seconds a fit", "{:.2f}", index=["set"], best=None)
    if 0.0 in accuracy.index.get_level_values("rate"):
        behind = behind_at_zero(accuracy)
        if behind.shape[1] and behind.notna().any(axis=None):
            _print(
                console, behind, "points behind the best rival at rate 0", "{:+.1f}", index=["set"], best=None
            )
    if len(auc):
        _print(console, mean_ranks(auc), "mean rank by garbage AUC", "{:.2f}", index=[""], best="min")
    _print(console, mean_ranks(accuracy), "mean rank by accuracy", "{:.2f}", index=[""], best="min")
    ranks = mean_ranks(headline(accuracy))
    _print(
        console, ranks, "mean rank by accuracy, our default and the rivals", "{:.2f}", index=[""], best="min"
    )
    for method, text in failures(results):
        console.print(f"failed: {method}: {text}")


def failures(results: pd.DataFrame) -> list[tuple[str, str]]:
    """What failed, how often, and the first message."""
    failed = results[results["failure"] != ""]
    return [
        (method, f"{len(group)} of {(results['method'] == method).sum()} cells; {group['failure'].iloc[0]}")
        for method, group in failed.groupby("method")
    ]


def write(results: pd.DataFrame, page: str) -> None:
    """Replace what lies between the page's markers by tables of these results."""
    path = Path(page)
    text = path.read_text()
    head, rest = text.split(BEGIN, 1)
    _, tail = rest.split(END, 1)
    accuracy, auc = means(results, "accuracy"), means(results, "garbage_auc")
    parts = [
        f"Measured with {machine()}; {results['seed'].nunique()} seeds, {len(accuracy)} cells a method; "
        f"code of our methods: {_code(results)}.",
        "**Mean rank by clean-test accuracy** (1 is best): our default and the rivals",
        _markdown(mean_ranks(headline(accuracy)), "{:.2f}", [""], best="min"),
        "**Mean rank by garbage AUC**",
        _markdown(mean_ranks(auc), "{:.2f}", [""], best="min"),
        "**Points behind the best rival on uncontaminated data** (negative: ahead)",
        _markdown(behind_at_zero(accuracy), "{:+.1f}", ["set"], best=None),
        "**Clean-test accuracy in %, mean over seeds**",
        _markdown(accuracy, "{:.1f}", CELL),
        "**Garbage AUC, mean over seeds**",
        _markdown(auc, "{:.3f}", CELL),
        "**Seconds a fit** (of one core; the rivals' include the tuning of C and the cross-validated doubts)",
        _markdown(means(results, "seconds").groupby(level="set", sort=False).mean(), "{:.2f}", ["set"], None),
    ]
    if len(headline(accuracy).columns) < len(accuracy.columns):
        every = _markdown(mean_ranks(accuracy), "{:.2f}", [""], best="min")
        parts[3:3] = ["**Mean rank by clean-test accuracy**, all methods", every]
    losses = _losses(accuracy)
    if losses:
        parts += ["**Cells where our default is more than one point behind the best rival**", losses]
    parts += [f"Failed: {method}: {text}." for method, text in failures(results)]
    path.write_text(f"{head}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{tail}")


def _code(results: pd.DataFrame) -> str:
    """Hashes of the code that our results come from; more than one says that it changed meanwhile."""
    ours = results[results["method"].isin(OURS.values())]
    return ", ".join(dict.fromkeys(ours["code"])) or "none"


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Our first classifier and the rivals: near relatives of it would take up ranks."""
    return table.drop(columns=[name for name in OURS.values() if name in table][1:])


def _losses(accuracy: pd.DataFrame) -> str:
    name = next((name for name in OURS.values() if name in accuracy), None)
    if name is None:
        return ""
    mine, rivals = accuracy[name], headline(accuracy).drop(columns=name)
    rows = []
    for cell in accuracy.index:
        behind = rivals.loc[cell].max() - mine.loc[cell]
        if behind > 1.0:
            set_, kind, rate = cell
            rows.append(
                f"- {set_}, {kind} at {rate:g}: {behind:.1f} points behind {rivals.loc[cell].idxmax()}"
            )
    return "\n".join(rows)


def _order(level: pd.Index) -> pd.Index:
    order = {"set": list(SETS), "kind": list(KINDS)}.get(level.name)
    return level if order is None else level.map({name: k for k, name in enumerate(order)}.get)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else "unknown processor"


def _rows(
    table: pd.DataFrame, form: str, best: str | None
) -> Iterable[tuple[list[str], list[str], list[bool]]]:
    for key, row in table.iterrows():
        keys = [
            f"{k:g}" if isinstance(k, float) else str(k) for k in (key if isinstance(key, tuple) else (key,))
        ]
        texts = ["-" if np.isnan(v) else form.format(v) for v in row]
        limit = None if best is None else form.format(row.max() if best == "max" else row.min())
        yield keys, texts, [text == limit for text in texts]


def _print(
    console: Console, table: pd.DataFrame, title: str, form: str, index: list[str], best: str | None = "max"
) -> None:
    out = Table(title=title, title_justify="left")
    for name in index:
        out.add_column(name)
    for name in table.columns:
        out.add_column(name, justify="right")
    for keys, texts, wins in _rows(table, form, best):
        out.add_row(*keys, *(f"[bold]{t}[/bold]" if win else t for t, win in zip(texts, wins, strict=True)))
    console.print(out)


def _markdown(table: pd.DataFrame, form: str, index: list[str], best: str | None = "max") -> str:
    lines = [
        "| " + " | ".join([*index, *table.columns]) + " |",
        "|" + "---|" * len(index) + "--:|" * len(table.columns),
    ]
    for keys, texts, wins in _rows(table, form, best):
        marked = [f"**{t}**" if win else t for t, win in zip(texts, wins, strict=True)]
        lines.append("| " + " | ".join([*keys, *marked]) + " |")
    return "\n".join(lines)
