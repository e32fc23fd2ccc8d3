"""Who makes the runs: this process, processes of this machine, or a Dask cluster; one interface."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from outlearn.model.checks import count

__all__ = ["Here", "executor"]

_WATCH_SECONDS = 1.0


class Here(Executor):
    """Runs everything at once in the calling process."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do the work now; an interrupt passes through."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def executor(workers: int | None, cluster: Any = None) -> Iterator[tuple[Executor, int]]:
    """Open the workers and say how many there are; an error or interrupt in the block ends them at once.

    ``cluster`` is a ``distributed.Client`` or the address of a scheduler; ``workers`` None is every core.
    """
    if cluster is not None:
        from outlearn.simulation.cluster import dask_executor

        with dask_executor(cluster) as found:
            yield found
        return
    size = (os.cpu_count() or 1) if workers is None else count("workers", workers)
    if size == 1:
        yield Here(), 1
        return
    from joblib.externals.loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(max_workers=size, initializer=_obey, initargs=(os.getpid(),))
    try:
        yield pool, size
    except BaseException:
        pool.shutdown(wait=True, kill_workers=True)
        raise
    pool.shutdown(wait=True)


def _obey(master: int) -> None:
    """Tie a worker to its master: Ctrl-C is the master's to handle, and kill -9 of it ends both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == master:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
