"""The page that says where paper, exact theory and runs agree, made from what the figures left behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from outlearn.exceptions import DataError
from outlearn.figures.reproduce import PLATES

__all__ = ["write_page"]

_BEYOND = ("8", "9", "10")
_HEAD = """# The paper, reproduced

<!-- Written by `outlearn reproduce page`; do not edit. -->

Figure by figure and claim by claim: what the paper shows, what the exact theory gives, what runs give.
Theory and algorithms share no code, only the model. This page is written by

```bash
outlearn reproduce all
outlearn reproduce page --page docs/reproduction.md
```

In every figure: solid, exact theory on the equilibrium; dashed, metastable and dotted, unstable branches;
thin, the paper's equations as printed; symbols, runs, with standard deviations over runs as bars, as in the
paper; dash-dotted or black, the Bayes bound.
"""


def write_page(folder: Path, page: Path) -> Path:
    """Write the page from the summaries in ``folder``, with copies of the pictures in a folder beside it."""
    summaries = _summaries(folder)
    pictures = page.parent / page.stem
    pictures.mkdir(parents=True, exist_ok=True)
    parts = [_HEAD, _sizes(summaries), _agreement(summaries)]
    for name in PLATES:
        summary = summaries[name]
        source = folder / f"{summary['name']}.png"
        if source.exists():
            shutil.copyfile(source, pictures / source.name)
        parts.append(_section(name, summary, pictures.name if source.exists() else None))
    parts.append(_claims())
    page.write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8")
    return page


def _summaries(folder: Path) -> dict[str, dict[str, Any]]:
    out, missing = {}, []
    for name in PLATES:
        path = folder / (f"{name}.json" if name == "large" else f"fig{name}.json")
        try:
            out[name] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            missing.append(name)
        except ValueError as error:
            raise DataError(f"{path}: not a summary that `outlearn reproduce` wrote: {error}") from error
    if missing:
        raise DataError(
            f"{folder}: nothing there of {', '.join(missing)}; make it with `outlearn reproduce "
            f"{' '.join(missing)} --out {folder}`"
        )
    return out


def _sizes(summaries: Mapping[str, dict[str, Any]]) -> str:
    by_size: dict[str, list[str]] = {}
    for name, summary in summaries.items():
        by_size.setdefault(summary["size"], []).append(name)
    words = {"full": "full size", "quick": "quick size (smaller N, fewer runs)", "tiny": "test size"}
    return (
        "Sizes on this page: "
        + "; ".join(f"{words[size]}: {', '.join(names)}" for size, names in by_size.items())
        + ".\n"
    )


def _agreement(summaries: Mapping[str, dict[str, Any]]) -> str:
    """Count the points of each figure by zone, and how many agree within three standard errors."""
    rows = []
    for name in PLATES:
        points = summaries[name]["agreement"]
        for zone in ("outside", "between spinodals"):
            for stable in (True, False):
                mine = [p for p in points if p["zone"] == zone and p["stable"] == stable]
                if not mine:
                    continue
                good = [p for p in mine if _largest_pull(p) <= 3.0]
                rows.append(
                    {
                        "figure": name,
                        "N": ", ".join(str(n) for n in sorted({p["n_features"] for p in mine})),
                        "between spinodals": "no" if zone == "outside" else "yes",
                        "replica symmetry": "holds" if stable else "broken (AT)",
                        "points": len(mine),
                        "within 3 standard errors": len(good),
                        "largest |ΔΦ|": max(_error(p) for p in mine),
                    }
                )
    return (
        "## Exact theory against runs\n\nA point agrees if the means of R, Q and Φ (or Δ) over runs lie "
        "within three standard errors of the exact "
        "saddle point; between spinodals it is compared with the branch that is nearest.\n\n" + _table(rows)
    )


def _largest_pull(point: Mapping[str, Any]) -> float:
    return max(abs(x) for key, x in point.items() if key.endswith("_pull") and x is not None)


def _error(point: Mapping[str, Any]) -> float:
    """Distance of the runs from theory in Φ, or in Δ where the figure shows that."""
    name = "Phi" if "Phi_theory" in point else "Delta"
    return round(abs(point[f"{name}_runs"] - point[f"{name}_theory"]), 5)


def _section(name: str, summary: Mapping[str, Any], pictures: str | None) -> str:
    where = "" if name == "large" else f"Figure {name}{' (beyond the paper)' if name in _BEYOND else ''}: "
    parts = [f"## {where}{summary['title']}", ""]
    if pictures is not None:
        parts += [f"![{summary['title']}]({pictures}/{summary['name']}.png)", ""]
    parts += [summary["caption"], ""]
    parts += [f"- {line}" for line in summary["findings"]]
    parts.append("")
    if summary["table"]:
        parts += [_table(summary["table"]), ""]
    if summary["agreement"]:
        parts += ["<details><summary>Every point</summary>", "", _table(_points(summary["agreement"]))]
        parts += ["", "</details>", ""]
    parts.append(
        f"Made in {summary['seconds']:g} s, runs that were kept not counted again ({summary['size']} size)."
    )
    return "\n".join(parts) + "\n"


def _points(points: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for p in points:
        row = {
            "learner": f"{p['learner']} from {p['start']}" if p["start"] != "-" else p["learner"],
            "N": p["n_features"],
            "α": p["alpha"],
            "η": p["eta"],
            "runs": p["runs"],
            "zone": p["zone"] if p["zone"] == "outside" else f"{p['zone']}, {p['branch']}",
            "AT": "holds" if p["stable"] else "broken",
        }
        for name in ("R", "Q", "Phi", "Delta"):
            if f"{name}_theory" in p:
                row[f"{name} theory"] = round(p[f"{name}_theory"], 5)
                row[f"{name} runs"] = f"{p[f'{name}_runs']:.5f} ± {p[f'{name}_se']:.5f}"
        rows.append(row)
    return rows


def _claims() -> str:
    from outlearn.theory.claims import claims

    rows = [
        {
            "claim": f"{c.claim} ({c.place})",
            "as printed": c.printed,
            "exact": c.exact,
            "runs": c.measured,
            "what is left of it": c.verdict,
        }
        for c in claims()
    ]
    return "## Claim by claim\n\n" + _table(rows)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table with the columns of all rows."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(map(_cell, columns)) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(column, "")) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.6g}"
    elif value is None:
        text = "–"
    else:
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
