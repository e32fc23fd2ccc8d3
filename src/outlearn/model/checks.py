"""Checks of arguments: each returns what it was given, as a plain value, or names it in a ParameterError."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outlearn.exceptions import ParameterError

__all__ = [
    "chemical_potential",
    "choice",
    "count",
    "finite",
    "flag",
    "generator",
    "is_positive",
    "number",
    "numbers",
    "positive",
]


def number(name: str, value: object, permitted: str, accepts: Callable[[float], bool]) -> float:
    """One number that ``accepts`` is true of; text, booleans and arrays are none, NaN never is.

    >>> number("share", 0.25, "a number in [0, 1]", lambda x: 0.0 <= x <= 1.0)
    0.25
    """
    try:
        x = math.nan if isinstance(value, bool | np.bool_ | str | bytes) or np.ndim(value) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        x = math.nan
    if math.isnan(x) or not accepts(x):
        raise ParameterError(name, value, permitted)
    return x


def finite(name: str, value: object) -> float:
    """Any finite number."""
    return number(name, value, "a finite number", math.isfinite)


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    return number(name, value, "a finite number > 0", is_positive)


def is_positive(x: Any) -> Any:
    """Whether a number (or each of an array) is finite and above zero."""
    return (x > 0.0) & (x < math.inf)


def chemical_potential(name: str, value: object) -> float:
    """A value of eta: any number, -inf included (no outliers), but +inf (nothing else)."""
    return number(name, value, "a number below +inf (-inf: no outliers)", lambda x: x < math.inf)


def numbers(
    name: str, values: object, permitted: str, accepts: Callable[[NDArray[np.float64]], Any]
) -> NDArray[np.float64]:
    """One number or a row of them, never empty, of which ``accepts`` is true (of all at once).

    >>> numbers("etas", [0, 1], "increasing numbers", lambda x: np.diff(x) > 0)
    array([0., 1.])
    """
    truths = isinstance(values, list | tuple) and any(isinstance(x, bool | np.bool_) for x in values)
    try:
        given = np.asarray(values)
        usable = given.dtype.kind in "iufO" and not truths
        x = np.atleast_1d(given.astype(np.float64)) if usable else np.empty(0)
    except (TypeError, ValueError, OverflowError):
        x = np.empty(0)
    if x.ndim != 1 or not x.size or np.isnan(x).any() or not np.all(accepts(x)):
        raise ParameterError(name, values, permitted)
    return x


def count(name: str, value: object, *, least: int = 1) -> int:
    """A whole number from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(name, value, f"a whole number >= {least}")
    return int(value)


def choice(name: str, value: object, options: tuple[str, ...]) -> None:
    """One of a few words."""
    if not isinstance(value, str) or value not in options:
        raise ParameterError(name, value, " or ".join(", ".join(map(repr, options)).rsplit(", ", 1)))


def generator(name: str, value: Any) -> np.random.Generator:
    """A stream of random numbers: one that is given, or a new one from a seed (None: from the system)."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise ParameterError(name, value, "a numpy Generator, a whole number >= 0 or None") from None


def flag(name: str, value: object) -> bool:
    """True or False, and no number in their stead."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, value, "True or False")
    return bool(value)
