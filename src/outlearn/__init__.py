"""outlearn: learning in the presence of outliers.

Rooms are imported when first touched, so ``import outlearn`` stays light.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_ROOMS = (
    "estimators",
    "exceptions",
    "figures",
    "inference",
    "model",
    "numerics",
    "practice",
    "simulation",
    "theory",
)
_NAMES = {
    "ConvergenceError": "exceptions",
    "DataError": "exceptions",
    "OutlearnError": "exceptions",
    "ParameterError": "exceptions",
    "Dataset": "model",
    "Ensemble": "model",
    "sample": "model",
    "AutoSelectionClassifier": "estimators",
    "BayesSelectionClassifier": "estimators",
    "Diagnosis": "practice",
    "HardSelectionClassifier": "estimators",
    "HebbClassifier": "estimators",
    "SoftSelectionClassifier": "estimators",
    "Plan": "practice",
    "diagnose": "practice",
    "load": "estimators",
    "plan": "practice",
    "save": "estimators",
}

__all__ = ["__version__", *_NAMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
