"""Every method of the comparison: ours as they come, and the rivals.

A method is a function (X, y, seed) -> Fitted. Inputs come scaled to unit variance (by the spoiled training
set itself); ``doubt`` says how doubtful each training example looks.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from benchmarks.real.fitted import Fitted, Method
from benchmarks.real.rivals import RIVALS

# Everything is learned from the data: nothing here was chosen by looking at a clean label.
AUTO: dict[str, Any] = dict.fromkeys(
    ("contamination", "label_noise", "noise_variance", "center_variance", "covariance"), "auto"
)
OURS = {
    "AutoSelectionClassifier": "auto",
    "SoftSelectionClassifier": "soft",
    "HardSelectionClassifier": "hard",
    "BayesSelectionClassifier": "Bayes",
}


def _ours(name: str) -> Method:
    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
        from outlearn import estimators

        kind = getattr(estimators, name)
        known = inspect.signature(kind).parameters
        options = {key: value for key, value in AUTO.items() if key in known}
        model = kind(**options, random_state=seed).fit(X, y)
        return Fitted(predict=model.predict, doubt=1.0 - model.inlier_proba_)

    return fit


def methods() -> dict[str, Method]:
    """Return every method that is there, ours first."""
    from outlearn import estimators

    ours = {OURS[name]: _ours(name) for name in OURS if hasattr(estimators, name)}
    return ours | RIVALS


def fingerprint(method: str) -> str:
    """Return a hash of the code a method's results depend on: results of other code are not mixed in."""
    here = Path(__file__).parent
    tasks = [here / "sets.py", here / "contamination.py"]
    if method in RIVALS:
        return _hash(sklearn.__version__, [*tasks, here / "rivals.py"])
    import outlearn

    root = Path(outlearn.__file__).parent
    rooms = [path for room in ("inference", "estimators") for path in sorted((root / room).glob("*.py"))]
    return _hash(repr(AUTO), [*tasks, *rooms])


def _hash(text: str, paths: Iterable[Path]) -> str:
    digest = hashlib.sha256(text.encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
