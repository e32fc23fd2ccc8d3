"""``outlearn demo``: learn from 80 % garbage and draw what was found."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from outlearn.cli.output import atomic, console, print_json, print_table, say

__all__ = ["demo"]


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture.")] = Path("out"),
    contamination: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Fraction of the examples that are garbage.")
    ] = 0.8,
    n_features: Annotated[int, typer.Option(min=2, help="Dimension N.")] = 100,
    n_samples: Annotated[int, typer.Option(min=20, help="Number of examples P.")] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Learn from data that are mostly garbage, and draw what was found.

    Two clusters of inputs know their labels; the rest is noise with labels drawn by a coin. Five learners
    get the same examples. The direction error is the angle to the true direction, in units of π.

    \b
    Examples:
      outlearn demo
      outlearn demo --contamination 0.9 --output pictures
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from outlearn.exceptions import DataError
    from outlearn.figures.demo import draw_demo
    from outlearn.model import Ensemble, overlaps, sample

    path = output / "demo.png"
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is not a directory")
    output.mkdir(parents=True, exist_ok=True)
    data = sample(Ensemble.from_contamination(contamination, gamma=10.0), n_features, n_samples, rng=seed)
    rows, errors, models = [], {}, {}
    screen = console() if not as_json else None
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=screen,
        disable=as_json,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        for name, learner in _learners().items():
            progress.update(task, description=f"{name} learns from {n_samples} examples")
            start = time.perf_counter()
            model = learner.fit(data.X, data.y)
            seconds = time.perf_counter() - start
            direction = getattr(model, "best_estimator_", model).coef_.ravel()
            errors[name] = overlaps(direction, data.center).angle
            models[name] = model
            rows.append((name, errors[name], float(model.score(*_clean(data))), seconds))

    soft = models["soft selection"]
    folded = data.y * (data.X @ soft.coef_.ravel() + soft.intercept_)
    found = soft.coef_.ravel() @ (soft.centers_[1] - soft.centers_[0]) / 2.0
    figure = draw_demo(soft.inlier_proba_, data.informative, folded / found, errors)
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)

    trusted = soft.inlier_proba_ > 0.5
    summary = {
        "garbage_share": contamination,
        "garbage_share_found": soft.contamination_,
        "trusted": int(trusted.sum()),
        "trusted_and_informative": int((trusted & data.informative).sum()),
        "informative": int(data.informative.sum()),
        "direction_errors": errors,
        "picture": str(path),
    }
    if as_json:
        print_json(summary)
        return
    print_table(
        ("learner", "direction error Φ", "accuracy on clean data", "seconds"),
        rows,
        title=f"{n_samples} examples in {n_features} dimensions, {contamination:.0%} of them garbage",
    )
    say(
        f"Soft selection was not told how much is garbage. It found a share of {soft.contamination_:.1%}, "
        f"and trusts {summary['trusted']} examples, {summary['trusted_and_informative']} of them rightly "
        f"({summary['informative']} are informative)."
    )
    say(f"Picture: {path.resolve()}")


def _learners() -> dict[str, Any]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    from outlearn.estimators import HardSelectionClassifier, HebbClassifier, SoftSelectionClassifier

    return {
        "Hebb's rule": HebbClassifier(),
        "logistic regression": GridSearchCV(
            LogisticRegression(max_iter=500), {"C": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}, cv=3
        ),
        "LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "hard selection": HardSelectionClassifier(covariance="spherical", label_noise=0),
        "soft selection": SoftSelectionClassifier(covariance="spherical", label_noise=0),
    }


def _clean(data: Any) -> tuple[Any, Any]:
    """Fresh informative examples of the same world."""
    from outlearn.model import Ensemble, sample

    fresh = sample(Ensemble(eta=float("-inf"), gamma=10.0), data.n_features, 5000, rng=1, center=data.center)
    return fresh.X, fresh.y
