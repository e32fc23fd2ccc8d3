"""The campaign store: one SQLite file that any number of runners may share, and that survives kill -9."""

from __future__ import annotations

import json
import os
import random
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from outlearn.exceptions import DataError, ParameterError
from outlearn.simulation.statistics import QUANTITIES, RunRecord, TaskStats
from outlearn.simulation.task import Task

__all__ = ["Store", "described"]

_APPLICATION = 0x4F55544C  # "OUTL", in the header of the file, so that a foreign database is recognised
_SCHEMA_VERSION = 1
_LEASE_SECONDS = 120.0
_PATIENCE = 60.0  # seconds to wait for another runner's lock
_OWNERS_HERE: set[str] = set()
_COLUMNS = ("status", "R", "Q", "z", "energy", "iterations", "data_reads")
_SCHEMA = """
CREATE TABLE tasks (strong_id TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    seed TEXT NOT NULL, strong_id TEXT NOT NULL REFERENCES tasks, run INTEGER NOT NULL CHECK (run >= 0),
    status TEXT NOT NULL, R REAL, Q REAL, z REAL, energy REAL, iterations INTEGER, data_reads INTEGER,
    PRIMARY KEY (seed, strong_id, run)
) WITHOUT ROWID;
CREATE TABLE claims (
    seed TEXT NOT NULL, strong_id TEXT NOT NULL, run INTEGER NOT NULL,
    owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, expires REAL NOT NULL,
    PRIMARY KEY (seed, strong_id, run)
) WITHOUT ROWID;
"""


class Store:
    """Runs on disk, each at most once: the key of a row is (campaign's seed, task, index of the run).

    A runner claims runs before it makes them, so that two runners on one file share the work; a claim
    is given up when its process is gone or has not been heard of for two minutes. Rows are written in one
    transaction per batch: what is lost in a crash is the batch in flight and nothing else.

    Examples
    --------
    >>> from outlearn.model import Ensemble
    >>> task = Task(learner="hebb", ensemble=Ensemble(eta=0.0, gamma=10.0), n_features=10, alpha=2)
    >>> with Store(":memory:") as store:
    ...     store.claim(0, task, [0, 1]), store.claim(0, task, [1, 2])
    ...     store.add(0, task, [RunRecord(index=0, status="converged", R=0.5, Q=0.5)])
    ...     store.stats(0, task).n_runs
    ([0, 1], [2])
    1
    1
    """

    EXPORTS = (".csv", ".parquet")

    def __init__(self, path: str | os.PathLike[str] = ":memory:", *, create: bool = True) -> None:
        if not isinstance(path, str | os.PathLike) or "\0" in os.fsdecode(path):
            raise ParameterError("path", path, "the name of a file")
        self.path = os.fsdecode(path)
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        _OWNERS_HERE.add(self._owner)
        in_memory = self.path == ":memory:"
        if not in_memory:
            file = Path(self.path)
            if file.is_dir():
                raise DataError(f"{file}: is a directory, not a store")
            if not create and not file.is_file():
                raise DataError(f"{file}: there is no such store")
            if not create and not file.stat().st_size:
                raise DataError(f"{file}: is empty, not a campaign store")
            if not file.absolute().parent.is_dir():
                raise DataError(f"{file}: there is no directory {file.absolute().parent}")
        try:
            # transactions are begun and ended below, not guessed by the driver
            self._db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: cannot be opened: {error}") from error
        try:
            with self._readable():
                self._prepare_in_turn()
        except BaseException:
            self._db.close()
            raise

    # -- the file ----------------------------------------------------------------------------------

    def _prepare_in_turn(self) -> None:
        """Prepare a new file beside other runners: SQLite waits for most locks, not for that of WAL."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._prepare()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(random.uniform(0.001, 0.02))

    def _prepare(self) -> None:
        # tables first: another runner makes them and the two numbers in one transaction, perhaps right now
        empty = not self._db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        application = self._pragma("application_id")
        version = self._pragma("user_version")
        if not empty and application != _APPLICATION:
            raise DataError(f"{self.path}: is a database of another program, not a campaign store")
        if not empty and version != _SCHEMA_VERSION:
            raise DataError(
                f"{self.path}: has layout version {version}; this outlearn reads version {_SCHEMA_VERSION}"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        # with WAL, NORMAL stays consistent; a power cut may take the last transactions, which are remade
        self._db.execute("PRAGMA synchronous = NORMAL")
        if empty:
            with self._transaction():
                # another runner may have been faster
                if not self._db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    for statement in _SCHEMA.split(";"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        else:
            self._check_layout()

    def _check_layout(self) -> None:
        (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise DataError(f"{self.path}: is damaged: {verdict}")
        for table, columns in (("tasks", 2), ("runs", 3 + len(_COLUMNS)), ("claims", 7)):
            if len(self._db.execute(f"PRAGMA table_info({table})").fetchall()) != columns:
                raise DataError(f"{self.path}: is damaged: table {table} is missing or has other columns")

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise DataError(f"{self.path}: cannot be used as a store: {error}") from error
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self.path}: is damaged or not a campaign store: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of the block or nothing of it; writers wait for each other before they look."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Give up this runner's claims and close the file."""
        try:
            self.release()
        except DataError:
            pass  # the file has gone or cannot be written to: the claims lapse by themselves
        finally:
            _OWNERS_HERE.discard(self._owner)
            self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- work --------------------------------------------------------------------------------------

    def claim(self, seed: int, task: Task, indices: Iterable[int]) -> list[int]:
        """Take, of these runs, those that are neither there nor in the hands of a living runner."""
        wanted, name, now = list(indices), task.strong_id, time.time()
        if not wanted:
            return []
        with self._readable(), self._transaction():
            self._define(task)
            done = self._indices("runs", seed, name)
            held = {
                run
                for run, owner, host, pid, expires in self._db.execute(
                    "SELECT run, owner, host, pid, expires FROM claims WHERE seed = ? AND strong_id = ?",
                    (str(seed), name),
                )
                if owner == self._owner or (expires > now and not _has_died(owner, host, pid))
            }
            free = [run for run in wanted if run not in done and run not in held]
            self._db.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        str(seed),
                        name,
                        run,
                        self._owner,
                        socket.gethostname(),
                        os.getpid(),
                        now + _LEASE_SECONDS,
                    )
                    for run in free
                ],
            )
        return free

    def renew(self) -> None:
        """Say that this runner is alive."""
        with self._readable():
            self._db.execute(
                "UPDATE claims SET expires = ? WHERE owner = ?", (time.time() + _LEASE_SECONDS, self._owner)
            )

    def release(self) -> None:
        """Give up everything this runner has claimed and not delivered."""
        with self._readable():
            self._db.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))

    def add(self, seed: int, task: Task, runs: Iterable[RunRecord]) -> int:
        """Write runs in one transaction; return how many were new. Those already there stay as they are."""
        name = task.strong_id
        rows = [(str(seed), name, r.index, *(getattr(r, column) for column in _COLUMNS)) for r in runs]
        with self._readable(), self._transaction():
            self._define(task)
            before = self._db.total_changes
            self._db.executemany(
                f"INSERT OR IGNORE INTO runs (seed, strong_id, run, {', '.join(_COLUMNS)}) "
                f"VALUES ({', '.join('?' * (3 + len(_COLUMNS)))})",
                rows,
            )
            added = self._db.total_changes - before
            self._db.executemany(
                "DELETE FROM claims WHERE seed = ? AND strong_id = ? AND run = ?", [row[:3] for row in rows]
            )
        return added

    def _define(self, task: Task) -> None:
        name, text = task.strong_id, task.canonical_json()
        self._db.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?)", (name, text))
        (stored,) = self._db.execute("SELECT definition FROM tasks WHERE strong_id = ?", (name,)).fetchone()
        if stored != text:
            raise DataError(f"{self.path}: is damaged: task {name[:12]} is not what its name says")

    def _indices(self, table: str, seed: int, name: str) -> set[int]:
        query = f"SELECT run FROM {table} WHERE seed = ? AND strong_id = ?"
        return {run for (run,) in self._db.execute(query, (str(seed), name))}

    # -- what is there -----------------------------------------------------------------------------

    def done(self, seed: int, task: Task) -> set[int]:
        """Indices of the runs that are there."""
        with self._readable():
            return self._indices("runs", seed, task.strong_id)

    def runs(self, seed: int, task: Task, stop: int | None = None, *, start: int = 0) -> list[RunRecord]:
        """Runs in the order of their indices, from ``start`` to below ``stop``."""
        query = (
            f"SELECT run, {', '.join(_COLUMNS)} FROM runs "
            "WHERE seed = ? AND strong_id = ? AND run >= ? AND run < ? ORDER BY run"
        )
        limit = (1 << 62) if stop is None else stop
        with self._readable():
            rows = self._db.execute(query, (str(seed), task.strong_id, start, limit)).fetchall()
        try:
            return [RunRecord(index=row[0], **dict(zip(_COLUMNS, row[1:], strict=True))) for row in rows]
        except (DataError, TypeError) as error:
            raise DataError(f"{self.path}: is damaged: {error}") from error

    def stats(self, seed: int, task: Task, stop: int | None = None) -> TaskStats:
        """Statistics of the runs below ``stop``, or of all."""
        return TaskStats.of(task.strong_id, self.runs(seed, task, stop))

    def tasks(self) -> list[tuple[int, Task, int]]:
        """Every (seed, task, number of runs) of the file; ``task.runs`` is that number."""
        query = (
            "SELECT seed, strong_id, definition, COUNT(*) FROM runs JOIN tasks USING (strong_id) "
            "GROUP BY seed, strong_id"
        )
        with self._readable():
            rows = self._db.execute(query).fetchall()
        found = []
        for seed, name, definition, count in rows:
            try:
                task = Task.from_dict(json.loads(definition) | {"runs": count})
            except (ValueError, TypeError) as error:
                raise DataError(f"{self.path}: task {name[:12]} cannot be read: {error}") from error
            if task.strong_id != name:
                raise DataError(f"{self.path}: is damaged: task {name[:12]} is not what its name says")
            found.append((int(seed), task, count))
        return sorted(found, key=lambda row: (row[0], _order(row[1])))

    def to_frame(self, *, each_run: bool = False) -> Any:
        """Return a pandas table: one row a task with its statistics, or with ``each_run`` one row a run."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for seed, task, _ in self.tasks():
            head = {"seed": seed} | described(task)
            if each_run:
                for run in self.runs(seed, task):
                    values = {name: getattr(run, name) for name in QUANTITIES}
                    rows.append(head | {"run": run.index, "status": run.status} | values)
            else:
                rows.append(head | self.stats(seed, task).to_dict())
        return pd.DataFrame(rows)

    def export(self, path: str | os.PathLike[str], *, each_run: bool = True) -> int:
        """Write the table as CSV or Parquet, by the ending of ``path``; return the number of rows."""
        target = Path(path)
        if target.suffix.lower() not in self.EXPORTS:
            raise DataError(f"{target}: the ending must be {' or '.join(self.EXPORTS)}")
        if not target.absolute().parent.is_dir():
            raise DataError(f"{target}: there is no directory {target.absolute().parent}")
        table = self.to_frame(each_run=each_run)
        if target.suffix.lower() == ".csv":
            table.to_csv(target, index=False)
        else:
            table.to_parquet(target, index=False)
        return len(table)

    def __repr__(self) -> str:
        tasks = self.tasks()
        return f"Store({self.path!r}: {len(tasks)} tasks, {sum(count for *_, count in tasks)} runs)"


def described(task: Task) -> dict[str, Any]:
    """A task's definition as columns of a table."""
    columns = task.to_dict()
    del columns["runs"]
    columns["learn"] = ",".join(task.learn)
    e = columns.pop("ensemble")
    return (
        {"strong_id": task.strong_id}
        | {k: float(v) for k, v in e.items()}
        | columns
        | {"n_samples": task.n_samples}
    )


def _order(task: Task) -> tuple[Any, ...]:
    e = task.ensemble
    return (task.learner, task.start or "", e.gamma, task.alpha, task.n_features, e.eta, task.strong_id)


def _has_died(owner: str, host: str, pid: int) -> bool:
    """Whether a runner of this machine is surely gone; of another machine nobody here can know."""
    if host != socket.gethostname():
        return False
    if pid == os.getpid():  # ours now, but perhaps that of a process before us
        return owner not in _OWNERS_HERE
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
