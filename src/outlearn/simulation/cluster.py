"""Dask as the workers of a campaign; the only module of this room that imports it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from outlearn.exceptions import DataError, ParameterError

__all__ = ["dask_executor"]


@contextmanager
def dask_executor(cluster: Any) -> Iterator[tuple[Executor, int]]:
    """Open an executor on a ``distributed.Client``, or on the scheduler at an address, and count its cores.

    A client that was given stays open.
    """
    from distributed import Client
    from distributed.comm import get_address_host

    if isinstance(cluster, Client):
        client, ours = cluster, False
    elif isinstance(cluster, str):
        try:
            get_address_host(cluster)  # a client that was given nonsense complains again when it is collected
            client, ours = Client(cluster, timeout="10s", set_as_default=False), True
        except (OSError, ValueError, TimeoutError) as error:
            raise DataError(f"no Dask scheduler answers at {cluster!r}: {error}") from error
    else:
        raise ParameterError("cluster", cluster, "a distributed.Client or the address of a scheduler")
    try:
        client.wait_for_workers(1, timeout=30)
        cores = sum(client.nthreads().values())
        pool = client.get_executor(pure=False, retries=1)
        try:
            yield pool, cores
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown(wait=True)
    finally:
        if ours:
            client.close()
