"""Diagnose and plan: the theory applied to real data."""

from __future__ import annotations

import importlib
from typing import Any

# Tables are read by every command: what they do not need is imported when it is first touched.
_HOME = {
    "Diagnosis": "diagnosis",
    "EffectiveEnsemble": "effective",
    "Estimate": "estimate",
    "Goodness": "goodness",
    "Plan": "planning",
    "Position": "position",
    "Prediction": "predictions",
    "Verdicts": "verdicts",
    "diagnose": "diagnosis",
    "judge": "verdicts",
    "plan": "planning",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
