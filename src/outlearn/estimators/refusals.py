"""Training sets that no classifier can learn from, refused in words that name what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from outlearn.exceptions import DataError
from outlearn.inference.rows import column_range, refuse_magnitude

__all__ = ["refuse_labels", "refuse_too_few", "refuse_unusable"]

_FEWEST_STEPS = 64  # of rounding that a feature must vary by


def refuse_labels(y: Any) -> None:
    """Refuse labels that name no classes."""
    try:
        check_classification_targets(y)
    except TypeError:  # they cannot be sorted
        raise DataError("y mixes labels of different types, text and numbers: use one type") from None


def refuse_too_few(n_samples: int, n_classes: int) -> None:
    """Refuse data from which no spread within a class can be told."""
    if n_samples <= n_classes:
        raise DataError(
            f"{n_samples} samples for {n_classes} classes: the spread within a class cannot be "
            "told; more samples than classes are needed"
        )


def refuse_unusable(X: Any, names: Any) -> None:
    """Refuse features without a usable spread, and numbers that cannot be squared."""
    low, high = column_range(X)
    with np.errstate(over="ignore"):
        spread, largest = high - low, np.maximum(-low, high)
    refuse_magnitude(float(spread.max()), float(largest.max()), X.dtype)
    if X.shape[0] == 1:
        return
    _refuse_features(names, "constant", spread == 0.0, "they tell nothing and have no variance; drop them")
    steps = _FEWEST_STEPS * np.finfo(X.dtype).eps
    _refuse_features(
        names,
        "nearly constant",
        spread < steps * largest,
        f"they vary by less than {steps:.0e} of their size, which {X.dtype} does not tell from rounding; "
        "subtract their middle before they are stored, or drop them",
    )


def _refuse_features(names: Any, word: str, refused: NDArray[np.bool_], why: str) -> None:
    columns = np.flatnonzero(refused)
    if not columns.size:
        return
    shown = [repr(str(names[j])) if names is not None else str(j) for j in columns[:5]]
    more = f" and {columns.size - 5} more" if columns.size > 5 else ""
    raise DataError(
        f"{word} feature{'s' if columns.size > 1 else ''} {', '.join(shown)}{more}: {why} "
        "(sklearn.feature_selection.VarianceThreshold)"
    )
