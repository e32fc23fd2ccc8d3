"""Run the cells of the table: one result per set, kind, rate, seed and method; none is run twice."""

from __future__ import annotations

import functools
import json
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.real import contamination, sets
from benchmarks.real.methods import fingerprint, methods

load = functools.lru_cache(maxsize=None)(sets.load)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One thing to run."""

    set: str
    kind: str
    rate: float
    seed: int
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came out of a cell; a failure is an outcome too."""

    cell: Cell
    fingerprint: str
    accuracy: float | None
    balanced_accuracy: float | None
    garbage_auc: float | None
    seconds: float
    failure: str = ""


def run_cell(cell: Cell, code: str) -> Outcome:
    """Spoil, scale, fit, test."""
    task = contamination.spoil(load(cell.set), cell.kind, cell.rate, cell.seed)
    scaler = make_pipeline(VarianceThreshold(), StandardScaler()).fit(task.X)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = methods()[cell.method](scaler.transform(task.X), task.y, cell.seed)
            guess = np.asarray(fitted.predict(scaler.transform(task.X_test)))
        mixed = 0 < task.garbage.sum() < len(task.garbage)
        return Outcome(
            cell=cell,
            fingerprint=code,
            accuracy=float((guess == task.y_test).mean()),
            balanced_accuracy=float(balanced_accuracy_score(task.y_test, guess)),
            garbage_auc=float(roc_auc_score(task.garbage, fitted.doubt)) if mixed else None,
            seconds=time.process_time() - start,
        )
    except Exception as error:  # a method that fails loses its cell, not the table
        return Outcome(
            cell=cell,
            fingerprint=code,
            accuracy=None,
            balanced_accuracy=None,
            garbage_auc=None,
            seconds=time.process_time() - start,
            failure=f"{type(error).__name__}: {error}"[:300],
        )


class Store:
    """Outcomes in a file of JSON lines; a line that was cut by a kill is passed over."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[tuple[Cell, str], Outcome] = {}
        self._newest: dict[Cell, Outcome] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    raw = json.loads(line)
                    outcome = Outcome(**(raw | {"cell": Cell(**raw["cell"])}))
                except (ValueError, TypeError, KeyError):
                    continue
                self._remember(outcome)

    def _remember(self, outcome: Outcome) -> None:
        self._known[outcome.cell, outcome.fingerprint] = outcome
        self._newest[outcome.cell] = outcome

    def newest(self, cell: Cell) -> Outcome | None:
        """The last outcome of a cell, whatever code gave it."""
        return self._newest.get(cell)

    def get(self, cell: Cell, code: str) -> Outcome | None:
        """The outcome of a cell as this code gave it."""
        return self._known.get((cell, code))

    def add(self, outcome: Outcome) -> None:
        self._remember(outcome)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def outcomes(cells: Iterable[Cell], store: Store, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of every cell: first those that are stored, then the others as they finish."""
    codes = {name: fingerprint(name) for name in methods()}
    missing = []
    for cell in cells:
        known = store.get(cell, codes[cell.method])
        if known is None:
            missing.append(cell)
        else:
            yield known
    work = (delayed(run_cell)(cell, codes[cell.method]) for cell in missing)
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):  # keeps the thread pools apart
        for outcome in Parallel(return_as="generator_unordered")(work):
            store.add(outcome)
            yield outcome
