"""How many threads a classifier may use, for rows and for matrix products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from outlearn.exceptions import ParameterError

__all__ = ["threads", "within_jobs"]


@functools.cache
def _pools() -> ThreadpoolController:
    """Thread pools of the libraries at work; to find them costs more than a small fit."""
    return ThreadpoolController()


def threads(n_jobs: Any) -> int:
    """Threads that ``n_jobs`` asks for."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ParameterError("n_jobs", n_jobs, "a whole number other than 0, or None")
    return int(effective_n_jobs(n_jobs))


_Method = TypeVar("_Method", bound=Callable[..., Any])


def within_jobs(method: _Method) -> _Method:
    """Hold the threads of matrix products to ``n_jobs`` while a method runs.

    Fits make thousands of small products. On two threads of their own each one waits longer than it
    works, the more so when other processes want the cores.
    """

    @functools.wraps(method)
    def bounded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _pools().limit(limits=threads(self.n_jobs), user_api="blas"):
            return method(self, *args, **kwargs)

    return bounded  # type: ignore[return-value]
