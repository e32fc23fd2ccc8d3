"""The whole error vocabulary of outlearn."""

from __future__ import annotations

from typing import Any

__all__ = ["ConvergenceError", "DataError", "OutlearnError", "ParameterError"]


class OutlearnError(Exception):
    """Base of every error that outlearn raises on purpose."""


class ParameterError(OutlearnError, ValueError):
    """A parameter lies outside its permitted range.

    >>> raise ParameterError("gamma", -1.0, "gamma > 0")
    Traceback (most recent call last):
    ...
    outlearn.exceptions.ParameterError: gamma = -1.0 is not permitted: gamma > 0
    """

    def __init__(self, name: str, value: object, permitted: str) -> None:
        self.name = name
        self.value = value
        self.permitted = permitted
        super().__init__(f"{name} = {value!r} is not permitted: {permitted}")

    def __reduce__(self) -> tuple[type, tuple[str, object, str]]:
        return type(self), (self.name, self.value, self.permitted)


class DataError(OutlearnError, ValueError):
    """Data (arrays, files) that cannot be used; the message says what and where."""


class ConvergenceError(OutlearnError, RuntimeError):
    """A solver stopped before its residual was small; ``partial`` is what it had reached."""

    def __init__(self, message: str, partial: Any = None) -> None:
        self.partial = partial
        super().__init__(message)

    def __reduce__(self) -> tuple[type, tuple[str, Any]]:
        return type(self), (str(self), self.partial)
