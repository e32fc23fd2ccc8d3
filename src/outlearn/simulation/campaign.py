"""Campaigns: many tasks, many runs, any number of workers; the same table to the last bit."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from typing import Any, TextIO

from outlearn.exceptions import OutlearnError, ParameterError
from outlearn.model.checks import count
from outlearn.simulation.cost import run_seconds
from outlearn.simulation.run import make_runs
from outlearn.simulation.statistics import RunRecord, TaskStats
from outlearn.simulation.stopping import Runs, StopRule
from outlearn.simulation.store import Store, described
from outlearn.simulation.task import Task
from outlearn.simulation.workers import executor

__all__ = ["Campaign", "CampaignResult", "Progress", "text_progress"]

_BATCH_SECONDS = 0.5  # what a crash may cost, and long against the cost of handing a batch over
_BATCH_RUNS = 64
_RENEW_SECONDS = 20.0
_POLL_SECONDS = 0.5
_SHOW_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a campaign is. With a stopping rule ``total`` is what is known to be needed, and may grow.

    Attributes
    ----------
    done, total : int
        Runs in the store and runs wanted.
    fresh : int
        Runs made by this call.
    elapsed, remaining : float
        Seconds; ``remaining`` weighs the runs by their expected cost, and is NaN before the first one.
    """

    done: int
    total: int
    fresh: int
    elapsed: float
    remaining: float


def text_progress(stream: TextIO | None = None) -> Callable[[Progress], None]:
    """Return a callback that keeps one line of text up to date, on stderr unless told otherwise."""
    out = sys.stderr if stream is None else stream
    shown = -math.inf

    def show(now: Progress) -> None:
        nonlocal shown
        end = "\n" if now.done >= now.total else ""
        if not end and now.elapsed < shown + _SHOW_SECONDS:
            return
        shown = now.elapsed
        left = "" if math.isnan(now.remaining) else f", {_clock(now.remaining)} left"
        print(f"\r{now.done}/{now.total} runs, {_clock(now.elapsed)}{left}   ", end=end, file=out, flush=True)

    return show


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignResult:
    """The statistics of every task, in the order of the tasks.

    Iterating gives (task, statistics); indexing by a task gives its statistics.
    """

    seed: int
    tasks: tuple[Task, ...]
    stats: tuple[TaskStats, ...]

    def __iter__(self) -> Iterator[tuple[Task, TaskStats]]:
        return iter(zip(self.tasks, self.stats, strict=True))

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, task: Task) -> TaskStats:
        try:
            return self.stats[self.tasks.index(task)]
        except ValueError:
            raise KeyError(task.label()) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the seed, and one row a task."""
        rows = [described(task) | stats.to_dict() for task, stats in self]
        return {"seed": self.seed, "tasks": rows}

    def to_frame(self) -> Any:
        """Return a pandas table, one row a task: its definition, then its statistics."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["tasks"])

    def __repr__(self) -> str:
        lines = [f"CampaignResult(seed={self.seed}): {len(self)} tasks"]
        lines += [f"  {task.label()}: {stats!r}" for task, stats in self]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Tasks and a seed; together they fix every number that :meth:`run` gives.

    Each run draws from streams made of the seed, the task's ``strong_id`` and the index of the run, so that
    neither the number of workers nor the order of work, nor an interruption, changes a bit.

    Examples
    --------
    >>> from outlearn.simulation import grid
    >>> tasks = grid(learner="soft", eta=[0.0, 2.0], n_features=50, alpha=10, runs=8)
    >>> table = Campaign(tasks, seed=1).run()
    >>> [round(stats.Phi.mean, 1) for task, stats in table]
    [0.0, 0.2]
    """

    tasks: tuple[Task, ...]
    seed: int = 0

    def __init__(self, tasks: Task | Iterable[Task], seed: int = 0) -> None:
        given: Any = (tasks,) if isinstance(tasks, Task) else tasks
        several = tuple(given) if isinstance(given, Iterable) else ()
        if not several or not all(isinstance(task, Task) for task in several):
            raise ParameterError("tasks", tasks, "one or more Task")
        names = [task.strong_id for task in several]
        if len(set(names)) < len(names):
            twice = next(task for k, task in enumerate(several) if names[k] in names[:k])
            raise ParameterError("tasks", twice.label(), "every task once")
        object.__setattr__(self, "tasks", several)
        object.__setattr__(self, "seed", count("seed", seed, least=0))

    def run(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        workers: int | None = 1,
        stop_when: StopRule | None = None,
        cluster: Any = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> CampaignResult:
        """Make the runs that are missing, keep them in the store, and return the statistics.

        Runs that the store holds already are not made again, so a campaign that was interrupted goes on when
        it is run again. Several processes may run on one store: they share the work.

        Parameters
        ----------
        store : Store or path, optional
            Where runs are kept; in memory when left out.
        workers : int, optional
            Processes; 1 works in this one, None takes every core.
        stop_when : rule, optional
            ``runs(n)`` or ``standard_error(...)``; every task's own ``runs`` when left out, and at most that.
        cluster : distributed.Client or str, optional
            A Dask cluster, or the address of its scheduler, to work on in place of local processes.
        progress : callable, optional
            Called with a :class:`Progress` after every batch, e.g. ``text_progress()``.
        """
        if not (stop_when is None or isinstance(stop_when, StopRule)):
            raise ParameterError("stop_when", stop_when, "a rule such as runs(...) or standard_error(...)")
        if not (progress is None or callable(progress)):
            raise ParameterError("progress", progress, "a function, or None")
        if isinstance(store, Store):
            return self._run(store, workers, stop_when, cluster, progress)
        with Store(":memory:" if store is None else store) as opened:
            return self._run(opened, workers, stop_when, cluster, progress)

    def _run(
        self,
        store: Store,
        workers: int | None,
        stop_when: StopRule | None,
        cluster: Any,
        progress: Callable[[Progress], None] | None,
    ) -> CampaignResult:
        jobs = [_Job(task, Runs(task.runs) if stop_when is None else stop_when) for task in self.tasks]
        for job in jobs:
            job.look(store, self.seed)
        if any(job.stop is None for job in jobs):
            with executor(workers, cluster) as (pool, size):
                try:
                    _Shift(self.seed, jobs, store, progress).work(pool, size)
                finally:
                    store.release()
        elif progress is not None:
            total = sum(job.needed for job in jobs)
            progress(Progress(done=total, total=total, fresh=0, elapsed=0.0, remaining=0.0))
        stats = tuple(TaskStats.of(job.task.strong_id, job.prefix[: job.stop]) for job in jobs)
        return CampaignResult(seed=self.seed, tasks=self.tasks, stats=stats)


@dataclass(slots=True)
class _Job:
    """One task on its way: which runs are there, which are being made, and whether they are enough."""

    task: Task
    rule: StopRule
    done: set[int] = field(default_factory=set)
    flying: set[int] = field(default_factory=set)
    prefix: list[RunRecord] = field(default_factory=list)
    stop: int | None = None

    def look(self, store: Store, seed: int, made: Iterable[int] | None = None) -> None:
        """Read the store again, or add what was just made; runs with a gap before them do not count yet."""
        if made is None:
            self.done = store.done(seed, self.task)
        else:
            self.done.update(made)
            self.flying.difference_update(made)
        end = len(self.prefix)
        while end in self.done:
            end += 1
        if end > len(self.prefix):
            self.prefix += store.runs(seed, self.task, start=len(self.prefix), stop=end)
        self.stop = self.rule.stop(self.prefix, self.task.runs)

    @property
    def needed(self) -> int:
        """How many runs are known to be needed."""
        return self.rule.horizon(len(self.prefix), self.task.runs) if self.stop is None else self.stop

    def missing(self, ahead: int = 0) -> list[int]:
        """Runs that are needed, not there, and not being made by us; some more, on trust, with ``ahead``."""
        if self.stop is not None:
            return []
        end = self.rule.horizon(self.needed + ahead, self.task.runs) if ahead else self.needed
        return [run for run in range(end) if run not in self.done and run not in self.flying]

    @property
    def seconds(self) -> float:
        """Expected seconds of one run."""
        t = self.task
        return run_seconds(t.n_features, t.n_samples, t.ensemble, t.draw, compiled=t.is_plain_em)

    @property
    def batch(self) -> int:
        """How many runs go out together."""
        return max(1, min(_BATCH_RUNS, int(_BATCH_SECONDS / self.seconds)))


class _Shift:
    """The work of one runner on one store."""

    def __init__(
        self, seed: int, jobs: list[_Job], store: Store, progress: Callable[[Progress], None] | None
    ) -> None:
        self.seed, self.jobs, self.store, self.progress = seed, jobs, store, progress
        self.flying: dict[Future[list[RunRecord]], tuple[_Job, list[int]]] = {}
        self.begin = self.renewed = time.monotonic()
        self.fresh = 0
        self.fresh_seconds = 0.0  # as expected beforehand, to be compared with the clock

    def work(self, pool: Any, workers: int) -> None:
        """Hand out batches and gather them until every task has enough."""
        self._report()
        while True:
            self._hand_out(pool, workers)
            if self.flying:
                self._gather()
            elif all(job.stop is not None for job in self.jobs):
                return
            else:  # the rest is in the hands of other runners: wait for them, or for their claims to lapse
                time.sleep(_POLL_SECONDS)
                for job in self.jobs:
                    if job.stop is None:
                        job.look(self.store, self.seed)

    def _hand_out(self, pool: Any, workers: int) -> None:
        most = 2 * workers if workers > 1 else 1
        # first what is surely needed; then, rather than idle, what a stopping rule may ask for next
        for ahead in (0, workers) if workers > 1 else (0,):
            for job in self.jobs:
                if len(self.flying) >= most:
                    return
                missing = job.missing(ahead)
                size = max(1, min(job.batch, -(-job.needed // workers)))
                while missing and len(self.flying) < most:
                    asked, missing = missing[:size], missing[size:]
                    ours = self.store.claim(self.seed, job.task, asked)
                    if ours:
                        job.flying.update(ours)
                        self.flying[pool.submit(make_runs, job.task, self.seed, ours)] = job, ours
                    if len(ours) < len(asked):  # another runner is at it
                        job.look(self.store, self.seed)
                        missing = [run for run in missing if run not in job.done]

    def _gather(self) -> None:
        ready, _ = wait(self.flying, timeout=_RENEW_SECONDS, return_when=FIRST_COMPLETED)
        now = time.monotonic()
        if now - self.renewed > _RENEW_SECONDS:
            self.store.renew()
            self.renewed = now
        for future in ready:
            job, indices = self.flying.pop(future)
            try:
                records = future.result()
            except BrokenExecutor as error:
                raise OutlearnError(
                    f"a worker died while it made runs {indices[0]} to {indices[-1]} of '{job.task.label()}' "
                    "(out of memory?); what is done is kept, run again to go on"
                ) from error
            self.store.add(self.seed, job.task, records)
            job.look(self.store, self.seed, made=indices)
            self.fresh += len(records)
            self.fresh_seconds += len(records) * job.seconds
        self._report()

    def _report(self) -> None:
        if self.progress is None:
            return
        elapsed = time.monotonic() - self.begin
        left = [(job, sum(run not in job.done for run in range(job.needed))) for job in self.jobs]
        expected = sum(missing * job.seconds for job, missing in left)
        total = sum(job.needed for job in self.jobs)
        self.progress(
            Progress(
                done=total - sum(missing for _, missing in left),
                total=total,
                fresh=self.fresh,
                elapsed=elapsed,
                remaining=elapsed * expected / self.fresh_seconds if self.fresh_seconds else float("nan"),
            )
        )
