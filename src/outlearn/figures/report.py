"""A self-contained HTML report about a diagnosis: the verdict first, then what supports it."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from outlearn.figures.diagnosis import (
    draw_curves,
    draw_fields,
    draw_phase,
    draw_probabilities,
    draw_quantiles,
)
from outlearn.practice import plan as make_plan
from outlearn.practice.comparison import compare

if TYPE_CHECKING:
    from outlearn.practice import Diagnosis, Plan

__all__ = ["report_html", "write_report"]

_SHOWN = 25
_NEAR = 1.1  # an error so much above the floor cannot fall much further

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
:root { --ink: #1c2530; --soft: #5b6673; --line: #dde2e8; --card: #fff; --page: #f4f6f8;
  --mark: $mark; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 20px 16px 56px; }
header p { color: var(--soft); margin: 0; overflow-wrap: anywhere; }
h1 { font-size: 1.15rem; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 1.08rem; margin: 0 0 8px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px 18px;
  margin-top: 16px; min-width: 0; }
.verdict { border-left: 6px solid var(--mark); }
.verdict p { margin: 6px 0; }
.verdict .lead { font-size: 1.22rem; font-weight: 600; line-height: 1.4; margin-top: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin-top: 16px; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.fact b { display: block; font-size: 1.45rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.fact span { color: var(--soft); font-size: .85rem; display: block; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 16px; }
.grid .card { margin-top: 0; }
.grid { margin-top: 16px; }
figure { margin: 0; max-width: 700px; }
figure svg { width: 100%; height: auto; display: block; }
figcaption, .note { color: var(--soft); font-size: .88rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
td.n, th.n { text-align: right; }
td.n { white-space: nowrap; }
tr.ours td { font-weight: 600; }
ul { margin: 6px 0 0; padding-left: 20px; }
.tag { display: inline-block; border-radius: 999px; padding: 1px 10px; font-size: .85rem; color: #fff;
  background: var(--mark); }
footer { color: var(--soft); font-size: .85rem; margin-top: 24px; }
@media (max-width: 560px) {
  main { padding: 12px 8px 40px; }
  .card { padding: 12px 10px; }
  .facts { grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); }
  table { font-size: .76rem; line-height: 1.35; }
  th, td { padding: 4px 6px 4px 0; }
  th:last-child, td:last-child { padding-right: 0; }
}
</style>
</head>
<body><main>
$body
</main></body>
</html>
""")

_NO_SIGNAL = "#6b7682"
_TRUST = {"good": "#1b8a5a", "fair": "#c07a00", "poor": "#c0392b"}


def write_report(path: str | Path, diagnosis: Diagnosis, X: Any, y: ArrayLike, **options: Any) -> None:
    """Write :func:`report_html` to a file."""
    Path(path).write_text(report_html(diagnosis, X, y, **options), encoding="utf-8")


def report_html(
    diagnosis: Diagnosis,
    X: Any,
    y: ArrayLike,
    *,
    title: str = "Diagnosis",
    target_error: float | None = None,
    n_folds: int = 5,
    notices: Sequence[str] = (),
) -> str:
    """Build the report as one HTML document without any reference to the outside.

    Parameters
    ----------
    diagnosis : Diagnosis
    X, y
        The data that were diagnosed: their rows are named in the table of doubtful examples (a data frame's
        index is used), and the classifiers are compared on them.
    target_error : float, optional
        A test error to plan for; half way between the error now and the floor if left out.
    n_folds : int
        Of the comparison with plain classifiers; 0 leaves it out.
    """
    d = diagnosis
    plan = _plan(d, target_error) if d.detected else None
    parts = [
        f"<header><h1>{html.escape(title)}</h1><p>{d.n_samples} examples, {d.n_features} features, "
        f"class {_e(d.classes[0])} against {_e(d.classes[1])}; noise structure: {d.structure}</p></header>",
        _verdict(d, plan, notices),
    ]
    if d.detected:
        parts += [_facts(d), _learners(d)]
    cards = []
    if plan is None:
        caption = "The direction that explains most about the inputs; it does not tell the labels apart."
        cards.append(_picture("What the data look like along one direction", draw_fields, d, caption))
    else:
        caption = (
            f"Each example is judged with itself left out. At most {100 * d.verdicts.fdr:.3g} % of the kept, "
            "and of the discarded, are expected to be judged wrongly."
        )
        cards.append(_picture("Who is informative", draw_probabilities, d, caption))
        caption = "Garbage lies around zero, right labels to the right of it, wrong labels to the left."
        cards.append(
            _picture("What the data look like along the direction that separates", draw_fields, d, caption)
        )
        cards.append(
            _picture(
                "Learning curve",
                draw_curves,
                plan,
                "Error on clean examples against the number of examples, from the theory; bands hold 90 %.",
            )
        )
        cards.append(
            _picture(
                "Phase diagram",
                draw_phase,
                d,
                "The best possible direction error at this signal strength; beyond the white line soft "
                "selection finds nothing.",
            )
        )
    parts.append(f'<div class="grid">{"".join(cards)}</div>')
    if plan is not None:
        parts += [_plan_card(plan), _doubtful(d, X, y)]
    parts.append(_goodness(d))
    if n_folds >= 2:
        parts.append(_comparison(d, X, y, n_folds))
    from outlearn import __version__

    parts.append(
        f"<footer>outlearn {__version__}. Intervals hold 90 %. Errors are those on fresh informative "
        f"examples "
        "unless it says otherwise.</footer>"
    )
    mark = _TRUST[d.goodness.trust] if d.detected else _NO_SIGNAL
    return _PAGE.substitute(title=html.escape(title), body="\n".join(parts), mark=mark)


def _plan(d: Diagnosis, target_error: float | None) -> Plan:
    if target_error is None:
        now = d.prediction("bayes").test_error.value
        floor = float(0.5 * math.erfc(math.sqrt(d.effective.gamma.value / 2.0)))
        target_error = _round(max(math.sqrt(now * max(floor, 1e-3 * now)), 1.02 * floor))
    return make_plan(d, target_error=min(max(target_error, 1e-9), 0.49))


def _round(value: float) -> float:
    """Two digits, upwards: a target that people can say."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit


def _verdict(d: Diagnosis, plan: Plan | None, notices: Sequence[str]) -> str:
    first, _, rest = d.verdict.partition(". ")
    sentences = [f'<p class="lead">{html.escape(first.rstrip("."))}.</p>']
    if rest:
        sentences.append(f"<p>{html.escape(rest)}</p>")
    sentences += [f"<p>{html.escape(s)}</p>" for p in d.positions[:1] for s in p.sentences]
    if plan is not None:
        sentences.append(f"<p>{html.escape(_outlook(plan))}</p>")
    if d.detected:
        sentences.append(
            f'<p><span class="tag">trust: {d.goodness.trust}</span> {html.escape(d.goodness.statement)}</p>'
        )
    notes = [*d.warnings, *notices]
    if notes:
        sentences.append("<ul>" + "".join(f"<li>{html.escape(n)}</li>" for n in notes) + "</ul>")
    return f'<section class="card verdict">{"".join(sentences)}</section>'


def _outlook(plan: Plan) -> str:
    """What more examples would bring; a target next to the floor is one that nobody asked for."""
    now = plan.error_now or 0.5
    if plan.floor < plan.target_error and now < _NEAR * plan.floor:
        return (
            f"More examples would hardly help: the classes overlap by {_p(plan.floor)}, and the error of the "
            f"Bayes learner is {_p(now)} already."
        )
    return plan.verdict


def _facts(d: Diagnosis) -> str:
    e = d.effective
    best = d.prediction(d.recommended)
    facts = [
        ("garbage", _p(e.contamination.value), f"{_p(e.contamination.low)} to {_p(e.contamination.high)}"),
        (
            "wrong labels among the rest",
            _p(e.label_noise.value),
            f"{_p(e.label_noise.low)} to {_p(e.label_noise.high)}",
        ),
        ("signal strength γ", f"{e.gamma.value:.3g}", f"{e.gamma.low:.3g} to {e.gamma.high:.3g}"),
        ("examples per feature", f"{e.alpha:.3g}", f"{e.n_samples} / {e.n_features}"),
        (
            f"error with {d.recommended}",
            _p(best.test_error.value),
            f"{_p(best.test_error.low)} to {_p(best.test_error.high)}",
        ),
    ]
    cells = "".join(
        f'<div class="fact"><span>{name}</span><b>{value}</b><span>{html.escape(low)}</span></div>'
        for name, value, low in facts
    )
    return f'<div class="facts">{cells}</div>'


def _learners(d: Diagnosis) -> str:
    rows = [
        (
            p.learner == d.recommended,
            [
                p.description.partition(":")[0].partition(",")[0],
                f"{_p(p.test_error.value)}",
                f"{_p(p.test_error.low)} – {_p(p.test_error.high)}",
                f"{p.direction_error.value:.3f}",
            ],
        )
        for p in d.predictions
    ]
    table = _table(["learner", "test error", "90 % interval", "direction error"], rows, numeric=(1, 2, 3))
    said: dict[str, list[str]] = {}
    for p in d.predictions:
        if p.note:
            said.setdefault(p.note, []).append(p.learner)
    notes = "".join(f"{', '.join(names)}: {html.escape(note)}. " for note, names in said.items())
    return (
        f'<section class="card"><h2>What each learner would reach on these data</h2>{table}'
        f'<p class="note">From the replica theory of the estimated ensemble. {notes}Recommended: '
        f"{d.recommended}, because "
        f"{html.escape(d.reason)}.</p></section>"
    )


def _plan_card(plan: Plan) -> str:
    rows = [(False, [n.learner, _n(n.n_samples), _reach(n.low, n.high), n.reason]) for n in plan.needs]
    needs = _table(["learner", "examples needed", "90 % interval", ""], rows, numeric=(1, 2))
    rows = [
        (
            False,
            [
                str(c.n_checked),
                _p(c.error_random),
                _n(c.worth_random),
                _p(c.error_doubtful),
                _n(c.worth_doubtful),
            ],
        )
        for c in plan.checking
    ]
    checks = _table(
        ["checked", "error if random", "worth", "error if most doubtful", "worth"],
        rows,
        numeric=(0, 1, 2, 3, 4),
    )
    note = '<p class="note">Worth: the new, unchecked examples that would bring the same.</p>'
    return (
        '<div class="grid"><section class="card">'
        f"<h2>Examples for an error of {_p(plan.target_error)}</h2>{needs}"
        f'</section><section class="card"><h2>Or check labels by hand</h2>{checks}{note}</section></div>'
    )


def _doubtful(d: Diagnosis, X: Any, y: ArrayLike) -> str:
    v = d.verdicts
    labels = np.asarray(y)
    names = X.index if hasattr(X, "index") else np.arange(len(labels))
    rows = []
    for k in v.most_doubtful(_SHOWN):
        row = int(v.index[k])
        rows.append(
            (
                False,
                [
                    str(names[row]),
                    str(labels[row]),
                    v.verdict[k],
                    _p(float(v.keep_proba[k])),
                    _p(float(v.garbage_proba[k])),
                    _p(float(v.wrong_label_proba[k])),
                ],
            )
        )
    head = ["row", "label", "verdict", "right", "garbage", "wrong label"]
    table = _table(head, rows, numeric=(3, 4, 5))
    title = f"The {len(rows)} most doubtful examples: check these first"
    return f'<section class="card"><h2>{title}</h2>{table}</section>'


def _goodness(d: Diagnosis) -> str:
    g = d.goodness
    rows = [
        (
            False,
            ["fields against the mixture (distance; p)", f"{g.field_distance:.3f}; {g.field_p_value:.2g}"],
        ),
        (False, ["excess kurtosis of a feature (0)", f"{g.kurtosis:+.2f}"]),
        (False, ["spread of squared lengths (1)", f"{g.length_spread:.2f}"]),
        (
            False,
            [
                "correlation between features beyond chance (0)",
                "not tested: whitened" if d.structure == "tied" else f"{g.correlation:.3f}",
            ],
        ),
        (False, ["variance of garbage over classes (1)", f"{g.garbage_spread:.2f}"]),
    ]
    table = _table(["check (value of the model)", "found"], rows, numeric=(1,))
    complaints = (
        "".join(f"<li>{html.escape(c)}</li>" for c in g.complaints) or "<li>nothing to complain of</li>"
    )
    return (
        '<div class="grid"><section class="card"><h2>Do the data look like the model?</h2>'
        f"{table}<ul>{complaints}</ul>"
        f"{f'<p>{html.escape(g.statement)}</p>' if d.detected else ''}</section>"
        + _picture("Quantiles of the fields", draw_quantiles, d, "On the line where the model holds.")
        + "</div>"
    )


def _comparison(d: Diagnosis, X: Any, y: ArrayLike, n_folds: int) -> str:
    found = compare(d, X, y, n_folds=n_folds)
    rows = [
        (
            c.ours,
            [
                c.name,
                f"{100 * c.accuracy:.1f} ± {100 * c.error:.1f} %",
                "–" if math.isnan(c.accuracy_kept) else f"{100 * c.accuracy_kept:.1f} %",
            ],
        )
        for c in found
    ]
    table = _table(["classifier", "accuracy, all labels", "accuracy, kept examples"], rows, numeric=(1, 2))
    return (
        f'<section class="card"><h2>Beside plain classifiers, by cross-validation</h2>{table}'
        '<p class="note">Held-out labels are contaminated too: garbage costs every method half its share; '
        "accuracy on kept examples has no such floor, but favours methods that agree with the "
        "diagnosis.</p></section>"
    )


def _picture(title: str, draw: Callable[..., Figure], source: Any, caption: str) -> str:
    out = io.StringIO()
    draw(source).savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    # every picture brings its own ids: make them differ, they share one document
    name = "".join(c for c in title if c.isalpha())
    for mark in ('id="', "url(#", 'href="#'):
        svg = svg.replace(mark, f"{mark}{name}-")
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)
    return (
        f'<section class="card"><h2>{html.escape(title)}</h2><figure>{svg}'
        f"<figcaption>{html.escape(caption)}</figcaption></figure></section>"
    )


def _table(
    head: Sequence[str], rows: Sequence[tuple[bool, Sequence[str]]], numeric: tuple[int, ...] = ()
) -> str:
    def cell(tag: str, k: int, text: str) -> str:
        return f"<{tag}{' class=n' if k in numeric else ''}>{html.escape(str(text))}</{tag}>"

    top = "".join(cell("th", k, text) for k, text in enumerate(head))
    body = "".join(
        f"<tr{' class=ours' if mark else ''}>{''.join(cell('td', k, t) for k, t in enumerate(row))}</tr>"
        for mark, row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _e(value: Any) -> str:
    return html.escape(str(value))


def _reach(low: int | None, high: int | None) -> str:
    if low is None and high is None:
        return "–"
    return f"{_n(low)} to {'any number' if high is None else _n(high)}"


def _n(count: int | None) -> str:
    return "–" if count is None else f"{count:,}".replace(",", " ")


def _p(share: float) -> str:
    if share >= 0.1:
        return f"{100 * share:.0f} %" if share < 0.99 else f"{100 * share:.1f} %"
    return f"{100 * share:.2g} %" if share >= 1e-4 else f"{100 * share:.1g} %"
