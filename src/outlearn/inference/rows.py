"""The one way algorithms read data: one pass over the rows, another weight."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.kernels import (
    gate,
    pass_over_columns,
    pass_over_csr,
    pass_over_rows,
    pass_with_both_signs,
    pass_with_many,
)

__all__ = ["Reads", "Respond", "Rows", "column_range", "refuse_magnitude", "refuse_weights"]

Array = NDArray[np.float64]
Respond = Callable[[slice, Array], Array]

_BLOCK_ROWS = (512, 2048)  # for matrix products: long enough for gemm, short enough to stay cached
_BLOCK_BYTES = (1 << 20, 8 << 20)
_PIECE = 1 << 17  # numbers that are centred at once
_CACHE_BYTES = 512 << 10  # rows of a compiled pass wait in the second-level cache for their weights
_MOST_ROWS = 128
_SINGLE_PRECISION_FROM = 8  # directions
_LARGEST = {4: 1e16, 8: 1e70}  # of a number, by the bytes of its type: sums of squares stay finite
_MOST_WEIGHT = 1e30
_ONE_THREAD_BYTES = 8 << 20  # below this, handing work to threads costs more than it saves


@runtime_checkable
class Reads(Protocol):
    """What an algorithm may ask of data, be they an array in memory or drawn as they are asked for.

    Rows are folded (multiplied by their label) and centred already. Sums over examples count
    example μ ``sample_weight[μ]`` times; None means once.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(P, N)."""
        ...

    @property
    def n_reads(self) -> int:
        """How often all of the data have been read."""
        ...

    @property
    def sample_weight(self) -> Array | None:
        """Multiplicity of every example, or None."""
        ...

    def fields(self, D: Array) -> Array:
        """(G, N) -> (P, G): the projection of every row on every direction."""
        ...

    def weighted_sums(self, W: Array) -> Array:
        """(P, G) -> (G, N): the sum of the rows under every column of weights."""
        ...

    def sweep(self, D: Array, respond: Respond) -> Array:
        """In one read: fields of a block of rows, weights from ``respond``, their weighted sum."""
        ...

    def square_norms(self) -> Array:
        """(P,): the squared norm of every row."""
        ...


class Rows:
    """Rows of a matrix in memory, folded by their labels, read without ever copying the matrix.

    >>> rows = Rows.of([[1.0, 2.0], [3.0, 4.0]], signs=[1, -1])
    >>> rows.fields(np.array([[1.0, 0.0]])).ravel().tolist()
    [1.0, -3.0]
    >>> rows.weighted_sums(np.array([[1.0], [1.0]])).tolist()
    [[-2.0, -2.0]]
    """

    __slots__ = ("X", "_norms", "_ones", "center", "n_reads", "n_threads", "sample_weight", "signs")

    X: Any
    signs: Array | None
    sample_weight: Array | None
    center: Array | None
    n_threads: int
    n_reads: int
    _norms: Array
    _ones: Array

    @classmethod
    def of(
        cls,
        X: Any,
        signs: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        n_threads: int = 1,
        center: ArrayLike | None = None,
    ) -> Rows:
        """Check the data and wrap them.

        ``X`` is dense (C or Fortran order, float32 or float64: used as it is) or a CSR matrix; anything
        else is converted once. One read is spent to see that every number is finite.
        """
        self = cls()
        self.X = _matrix(X)
        p, n = self.X.shape
        self.signs = _signs(signs, p)
        self.sample_weight = _sample_weight(sample_weight, p)
        if isinstance(n_threads, bool) or not isinstance(n_threads, int | np.integer) or n_threads < 1:
            raise ParameterError("n_threads", n_threads, "a whole number >= 1")
        self.n_threads = int(n_threads)
        self.center = None
        if center is not None:
            self.center = np.array(center, dtype=np.float64)
            if self.center.shape != (n,) or not np.isfinite(self.center).all():
                raise DataError(f"center must be {n} finite numbers, one per column of X")
        self.n_reads = 0
        self._ones = np.ones(p if self.signs is None or self.sample_weight is None else 0)
        self._norms = self._square_norms()
        bad = np.flatnonzero(~np.isfinite(self._norms))
        if bad.size:
            raise DataError(
                f"X contains NaN, infinity or a value too large to square (first in row {bad[0]})"
            )
        largest = float(np.sqrt(self._norms.max()))
        if largest == 0.0 and self.center is None:  # unless the squares alone are
            largest = float(abs(self.X).max())
        refuse_magnitude(largest, largest, self.dtype)
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """(P, N)."""
        p, n = self.X.shape
        return int(p), int(n)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating-point type of the data."""
        return np.dtype(self.X.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes that one read moves."""
        if sparse.issparse(self.X):
            return int(self.X.data.nbytes + self.X.indices.nbytes)
        return int(self.X.nbytes)

    def fields(self, D: ArrayLike) -> Array:
        """Project every row on every direction: (G, N) -> (P, G)."""
        directions, shift = self._directions(D)
        out = np.empty((self.shape[0], shift.size))
        self._each_block(lambda rows: self._fields_of(rows, directions, shift, out))
        return out

    def weighted_sums(self, W: ArrayLike) -> Array:
        """Sum the rows under every column of weights: (P, G) -> (G, N)."""
        weights = np.asarray(W, dtype=np.float64)
        if weights.ndim != 2 or weights.shape[0] != self.shape[0]:
            raise DataError(f"weights have shape {weights.shape}; X has {self.shape[0]} rows")
        return self._sum(self._each_block(lambda rows: self._sums_of(rows, weights[rows])))

    def sweep(self, D: ArrayLike, respond: Respond) -> Array:
        """In ONE read: fields H of a block of rows, ``W = respond(rows, H)``, the sum of rows under W.

        ``respond`` takes the slice of rows and their (block, G) fields and returns (block, G') weights. With
        ``n_threads`` above one it is called from several threads at once, for different rows.
        """
        directions, shift = self._directions(D)

        def work(rows: slice) -> Array:
            fields = self._fields_of(rows, directions, shift)
            return self._sums_of(rows, np.asarray(respond(rows, fields), dtype=np.float64))

        return self._sum(self._each_block(work))

    def select(
        self, D: Array, scale: Array, offset: Array, *, hard: bool, out: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """In ONE read: gate the fields of every direction, as :func:`kernels.gate` does.

        Returns (G, N) weighted sums, (G,) total weights, (G,) losses; fills ``out`` (P, G) with the weights.
        Compiled passes serve one direction in any storage and several in C order. The rest are matrix
        products on blocks of rows; so are many directions on float32 data, where single precision is faster.
        """
        p = self.shape[0]
        counts = self._ones if self.sample_weight is None else self.sample_weight
        if len(D) == 1:
            weights = np.empty(p) if out is None else out[:, 0]
            return self._select_one(D[0], float(scale[0]), float(offset[0]), hard, counts, weights)
        tiled = self.dtype == np.float64 or len(D) < _SINGLE_PRECISION_FROM
        if tiled and not sparse.issparse(self.X) and self.X.flags.c_contiguous:
            weights = np.empty((p, 0)) if out is None else out
            return self._select_many(D, scale, offset, hard, counts, weights)
        parts: dict[int, tuple[Array, Array]] = {}

        def respond(rows: slice, H: Array) -> Array:
            parts[rows.start] = gate(H, counts[rows], scale, offset, hard)
            if out is not None:
                out[rows] = H
            return H

        sums = self.sweep(D, respond)
        done = [parts[k] for k in sorted(parts)]
        return sums, np.sum([t for t, _ in done], axis=0), np.sum([e for _, e in done], axis=0)

    def select_by_label(
        self, d: Array, shift: float, offset: float, signs: Array, counts: Array, *, hard: bool
    ) -> tuple[Array, Array, Array, float]:
        """In ONE read of dense C-ordered rows: gate sign·((x - center)·d - shift) + offset, and sum by sign.

        Returns (2, N) weighted sums of the rows of sign -1 and +1, (2,) their total weights, (P,) the weights
        of the gate and the loss. Signs are given with the call; the rows themselves are not folded.
        """
        p, n = self.shape
        if self.center is not None:
            shift += float(d @ self.center)
        weights = np.empty(p)
        block = max(8, min(_MOST_ROWS, _CACHE_BYTES // (n * self.dtype.itemsize)) // 8 * 8)
        d = np.ascontiguousarray(d)

        def work(rows: slice) -> tuple[Array, Array]:
            sums = np.zeros((2, n))
            rest = (block, signs, counts, d, shift, offset, hard, weights, sums)
            return sums, np.array(pass_with_both_signs(self.X, rows.start, rows.stop, *rest))

        parts = self._each(self._ranges(), work)
        both, (total, loss, signed) = (self._sum([part[k] for part in parts]) for k in (0, 1))
        sums = 0.5 * np.stack([both[1] - both[0], both[1] + both[0]])
        totals = 0.5 * np.array([total - signed, total + signed])
        if self.center is not None:
            sums -= np.outer(totals, self.center)
        return sums, totals, weights, float(loss)

    def square_norms(self) -> Array:
        """Squared norm of every (centred) row; kept from the first look at the data."""
        return self._norms

    # -- one block of rows -------------------------------------------------------------------------

    def _directions(self, D: ArrayLike) -> tuple[NDArray[Any], Array]:
        directions = np.asarray(D, dtype=np.float64)
        if directions.ndim != 2 or directions.shape[1] != self.shape[1]:
            raise DataError(f"directions have shape {directions.shape}; X has {self.shape[1]} columns")
        shift = np.zeros(len(directions)) if self.center is None else directions @ self.center
        return np.ascontiguousarray(directions.T, dtype=self.dtype), shift

    def _block(self, rows: slice) -> Any:
        """Return a view of some rows (slicing a sparse matrix would copy them)."""
        if not sparse.issparse(self.X):
            return self.X[rows]
        starts = self.X.indptr[rows.start : rows.stop + 1]
        held = slice(starts[0], starts[-1])
        parts = (self.X.data[held], self.X.indices[held], starts - starts[0])
        return sparse.csr_array(parts, shape=(rows.stop - rows.start, self.shape[1]))

    def _fields_of(
        self, rows: slice, directions: NDArray[Any], shift: Array, out: Array | None = None
    ) -> Array:
        product = self._block(rows) @ directions
        H = product.astype(np.float64, copy=False) if out is None else out[rows]
        if out is not None:
            H[...] = product
        H -= shift
        if self.signs is not None:
            H *= self.signs[rows, None]
        return H

    def _sums_of(self, rows: slice, weights: Array) -> Array:
        factor: Array | None = self.signs if self.signs is None else self.signs[rows]
        if self.sample_weight is not None:
            counts = self.sample_weight[rows]
            factor = counts if factor is None else factor * counts
        if factor is not None:
            weights = weights * factor[:, None]
        total = (self._block(rows).T @ weights.astype(self.dtype, copy=False)).T.astype(np.float64)
        if self.center is not None:
            total -= np.outer(weights.sum(axis=0), self.center)
        return total

    def _select_one(
        self, direction: Array, scale: float, offset: float, hard: bool, counts: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        n = self.shape[1]
        shift = 0.0 if self.center is None else float(direction @ self.center)
        signs = self._ones if self.signs is None else self.signs
        wide = n * self.dtype.itemsize
        data: tuple[Any, ...]
        fitting = min(_MOST_ROWS, _CACHE_BYTES // wide)
        if sparse.issparse(self.X):
            run, data = pass_over_csr, (self.X.data, self.X.indices, self.X.indptr)
        elif self.X.flags.c_contiguous:
            run, data = pass_over_rows, (self.X,)
        else:
            run, data = pass_over_columns, (self.X.T,)
            fitting = max(64, _CACHE_BYTES // wide)  # a strip of columns is read in pieces of a few lines
        block = max(8, fitting // 8 * 8)
        direction = np.ascontiguousarray(direction)

        def work(rows: slice) -> tuple[Array, Array]:
            sums = np.zeros(n)
            rest = (block, signs, counts, direction, shift, scale, offset, hard, weights, sums)
            return sums, np.array(run(*data, rows.start, rows.stop, *rest))

        parts = self._each(self._ranges(), work)
        sums, (total, loss, signed) = (self._sum([part[k] for part in parts]) for k in (0, 1))
        if self.center is not None:
            sums -= signed * self.center
        return sums[None, :], np.array([total]), np.array([loss])

    def _select_many(
        self, D: Array, scale: Array, offset: Array, hard: bool, counts: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        g, n = D.shape
        padded = -(-g // 4) * 4  # tiles are four directions wide
        signs = self._ones if self.signs is None else self.signs
        directions, slopes, shifts = np.zeros((padded, n)), np.zeros(padded), np.zeros(padded)
        directions[:g], slopes[:g], shifts[:g] = D, scale, offset
        center = np.zeros(padded) if self.center is None else directions @ self.center

        def work(rows: slice) -> tuple[Array, Array]:
            sums, scores = np.zeros((padded, n)), np.zeros((3, padded))
            pass_with_many(
                self.X, rows.start, rows.stop, _MOST_ROWS, signs, counts, directions, center, slopes, shifts,
                hard, weights, sums, *scores,
            )  # fmt: skip
            return sums[:g], scores[:, :g]

        parts = self._each(self._ranges(), work)
        sums, (total, loss, signed) = (self._sum([part[k] for part in parts]) for k in (0, 1))
        if self.center is not None:
            sums -= np.outer(signed, self.center)
        return sums, total, loss

    def _square_norms(self) -> Array:
        out = np.empty(self.shape[0])

        def work(rows: slice) -> None:
            block = self._block(rows)
            if sparse.issparse(block):
                squares = np.asarray(block.power(2).sum(axis=1, dtype=np.float64)).ravel()
                if self.center is not None:
                    squares += float(self.center @ self.center) - 2.0 * (block @ self.center)
                out[rows] = np.maximum(squares, 0.0)
                return
            if self.center is None:
                np.einsum("ij,ij->i", block, block, out=out[rows], dtype=np.float64)
                return
            step = max(1, _PIECE // block.shape[1])
            for k in range(0, block.shape[0], step):
                piece = block[k : k + step] - self.center
                np.einsum("ij,ij->i", piece, piece, out=out[rows][k : k + step])

        with np.errstate(over="ignore", invalid="ignore"):
            self._each_block(work)
        return out

    # -- all blocks --------------------------------------------------------------------------------

    def blocks(self) -> list[slice]:
        """Blocks of rows for matrix products."""
        p = self.shape[0]
        least, most = (max(1, size * p // max(1, self.nbytes)) for size in _BLOCK_BYTES)
        step = min(max(least, _BLOCK_ROWS[0]), most, _BLOCK_ROWS[1])
        return [slice(first, min(p, first + step)) for first in range(0, p, step)]

    def _ranges(self) -> list[slice]:
        """One range of rows for each thread."""
        if self._threads() == 1:
            return [slice(0, self.shape[0])]
        edges = np.linspace(0, self.shape[0], self._threads() + 1).astype(int)
        return [slice(int(lo), int(hi)) for lo, hi in itertools.pairwise(edges)]

    def _threads(self) -> int:
        return 1 if self.nbytes < _ONE_THREAD_BYTES else min(self.n_threads, self.shape[0])

    def _each_block(self, work: Callable[[slice], Any]) -> list[Any]:
        return self._each(self.blocks(), work)

    def _each(self, pieces: list[slice], work: Callable[[slice], Any]) -> list[Any]:
        """Run ``work`` on all pieces of the data, in threads where that pays; this is one read."""
        self.n_reads += 1
        if self._threads() == 1 or len(pieces) == 1:
            return [work(rows) for rows in pieces]
        with ThreadPoolExecutor(self._threads()) as pool:
            return list(pool.map(work, pieces))

    @staticmethod
    def _sum(parts: list[Array]) -> Array:
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def __repr__(self) -> str:
        kind = "CSR" if sparse.issparse(self.X) else "dense"
        return f"Rows({self.shape[0]} x {self.shape[1]}, {kind} {self.dtype.name}, {self.n_reads} reads)"


def refuse_magnitude(least: float, largest: float, dtype: Any) -> None:
    """Refuse data whose squares, or sums of their squares, leave the range of their floating-point type.

    ``largest`` is the largest absolute value, ``least`` what must not vanish when squared (0: nothing).
    """
    top = _LARGEST[np.dtype(dtype).itemsize]
    if largest > top:
        word, value = "large", largest
    elif 0.0 < least < 1.0 / top:
        word, value = "small", least
    else:
        return
    raise DataError(
        f"X holds numbers of the size {value:.1e}, too {word} to square in {np.dtype(dtype).name}: rescale it"
    )


def refuse_weights(weights: Array) -> None:
    """Refuse weights that count no examples, or so many or so few that sums of squares overflow or vanish."""
    if (weights < 0.0).any():
        raise DataError("sample_weight holds negative numbers: weights must be >= 0")
    if not (np.isfinite(weights).all() and weights.any()):
        raise DataError("sample_weight must be finite and >= 0, and not all zero")
    total = float(weights.sum() / _MOST_WEIGHT)
    if not _MOST_WEIGHT**-2 <= total <= 1.0:
        raise DataError(
            f"sample_weight adds up to {total * _MOST_WEIGHT:.1e} examples; between {1 / _MOST_WEIGHT:g} and "
            f"{_MOST_WEIGHT:g} can be counted"
        )


def column_range(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Smallest and largest number of every column."""
    if not sparse.issparse(X):
        return X.min(axis=0), X.max(axis=0)
    # scipy's way there would be a copy of the matrix
    n_samples, n_features = X.shape
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    stored = np.zeros(n_features, dtype=np.intp)
    np.minimum.at(low, X.indices, X.data)
    np.maximum.at(high, X.indices, X.data)
    np.add.at(stored, X.indices, 1)
    some_zero = stored < n_samples
    low[some_zero] = np.minimum(low[some_zero], 0.0)
    high[some_zero] = np.maximum(high[some_zero], 0.0)
    return low, high


def _matrix(X: Any) -> Any:
    if sparse.issparse(X):
        if X.ndim != 2:
            raise DataError(f"X must be a matrix, not an array of shape {X.shape}")
        X = X.tocsr()
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
    else:
        try:
            X = np.asarray(X)
            if X.dtype not in (np.float32, np.float64):
                if X.dtype.kind == "c":
                    raise DataError("X holds complex numbers; outlearn works on real ones")
                X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"X cannot be read as a matrix of numbers: {error}") from None
        if X.ndim != 2:
            raise DataError(f"X must be a matrix, not an array of shape {X.shape}")
    if 0 in X.shape:
        raise DataError(f"X is empty: shape {X.shape}")
    return X


def _signs(signs: ArrayLike | None, p: int) -> Array | None:
    if signs is None:
        return None
    values = _real(signs, "labels must be -1 or +1")
    if values.shape != (p,):
        raise DataError(f"labels have shape {values.shape}; X has {p} rows")
    if not np.isin(values, (-1.0, 1.0)).all():
        raise DataError("labels must be -1 or +1")
    return values


def _sample_weight(sample_weight: ArrayLike | None, p: int) -> Array | None:
    if sample_weight is None:
        return None
    values = _real(sample_weight, "sample_weight must be numbers >= 0")
    if values.shape != (p,):
        raise DataError(f"sample_weight has shape {values.shape}; X has {p} rows")
    refuse_weights(values)
    return values


def _real(values: ArrayLike, permitted: str) -> Array:
    """Read real numbers, or say what is permitted."""
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise TypeError
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(permitted) from None
