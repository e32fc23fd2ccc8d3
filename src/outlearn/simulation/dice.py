"""Gaussian data drawn as they are looked at: the matrix is never formed, the law is the same.

An algorithm sees the data matrix only through products with vectors. Folded examples are Y = V cᵀ + G/√γ
with independent standard normals in G; when G has answered for some vectors on its right and some on its
left, what it answers for one more is Gaussian again, with a mean and a projection that the earlier answers
fix ("Householder dice", Lu 2021). A run of T steps costs O((P + N) T²) time and O((P + N) T) memory in
place of O(P N T) and O(P N).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import ConvergenceError, DataError, ParameterError
from outlearn.inference.rows import Respond, Rows
from outlearn.model import Ensemble
from outlearn.model.checks import count, numbers
from outlearn.simulation.cost import dense_bytes

__all__ = ["MOST_NUMBERS", "NOTHING_NEW", "Dice", "fast_stream"]

Array = NDArray[np.float64]

_BLOCK = 16  # basis vectors that are allocated together; the system commits memory when they are written
_MEMORY = 1 << 31
MOST_NUMBERS = _MEMORY // 32  # P + N of which two vectors a side and their images fit
NOTHING_NEW = 1e-12  # a vector that lies in the span of the earlier ones up to this part of its length


def fast_stream(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Open the stream whose normals come fastest, seeded from another."""
    try:
        seeds = np.random.default_rng(rng).integers(0, 2**63, size=4)
    except (TypeError, ValueError):
        raise ParameterError("rng", rng, "a Generator, a whole number >= 0, or None") from None
    return np.random.Generator(np.random.SFC64([int(s) for s in seeds]))


class Dice:
    """Folded examples of the ensemble that exist only as far as they were asked about.

    Has the protocol of :class:`outlearn.inference.rows.Reads`, so every algorithm that reads data through
    it runs on this object unmodified, with results of the same law as on data drawn in full.

    Parameters
    ----------
    ensemble : Ensemble
        How the data are drawn; only η and γ matter.
    n_features, n_samples : int
        N and P.
    rng : Generator or int, optional
        Source of everything random.
    center : array (N,), optional
        The truth B; uniform on the sphere |B|² = N when left out.
    memory : int
        Bytes that the visited vectors may take. They allow ``max_directions`` vectors on each side; when
        an algorithm visits more, the rest of the matrix is drawn in full, conditioned on all that was
        seen, if it fits into the same memory; otherwise ConvergenceError.

    Attributes
    ----------
    center : array (n_features,)
        The truth B, with |B|² = N.
    informative : bool array (n_samples,)
        The hidden V.

    Examples
    --------
    >>> dice = Dice(Ensemble(eta=0.0, gamma=10.0), n_features=1000, n_samples=20_000, rng=0)
    >>> field = dice.fields(dice.center[None, :] / np.sqrt(1000))
    >>> print(np.round(field[dice.informative].mean(), 2), np.round(field[~dice.informative].mean(), 2))
    1.0 -0.0
    """

    def __init__(
        self,
        ensemble: Ensemble,
        n_features: int,
        n_samples: int,
        rng: np.random.Generator | int | None = None,
        *,
        center: ArrayLike | None = None,
        memory: int = _MEMORY,
    ) -> None:
        if not isinstance(ensemble, Ensemble):
            raise ParameterError("ensemble", ensemble, "an Ensemble")
        self._shape = (count("n_samples", n_samples), count("n_features", n_features))
        self.memory = count("memory", memory)
        self.max_directions = self.memory // (16 * (n_samples + n_features))
        if self.max_directions < 2:
            raise ParameterError(
                "memory", memory, f">= {32 * (n_samples + n_features)} bytes, two vectors a side"
            )
        self._stream = fast_stream(rng)
        if center is None:
            B = self._stream.standard_normal(n_features)
            B *= np.sqrt(n_features) / np.linalg.norm(B)
        else:
            permitted = f"{n_features} finite numbers"
            B = numbers("center", center, permitted, np.isfinite).copy()
            if B.size != n_features:
                raise ParameterError("center", B.shape, permitted)
        self.center: Array = B
        self.informative = self._stream.random(n_samples) < ensemble.informative_fraction
        self._shift = self.center / np.sqrt(n_features)
        self._spread = 1.0 / np.sqrt(ensemble.gamma)
        self._right = _Side(n_features, n_samples)  # vectors u with G u
        self._left = _Side(n_samples, n_features)  # vectors l with Gᵀ l
        self._unseen_dimension = n_features * n_samples
        self._total_square = float(self._stream.chisquare(self._unseen_dimension))  # |G|²
        self._unseen_square = self._total_square
        self._square_sum: float | None = None
        self._rows: Rows | None = None
        self.n_reads = 0

    @property
    def shape(self) -> tuple[int, int]:
        """(P, N)."""
        return self._shape

    @property
    def sample_weight(self) -> None:
        """None: every example counts once."""
        return None

    @property
    def n_directions(self) -> tuple[int, int]:
        """How many independent vectors were visited on the right and on the left."""
        return self._right.count, self._left.count

    def fields(self, D: ArrayLike) -> Array:
        """(G, N) -> (P, G): projections of all examples, drawn where they are not yet known."""
        directions = self._checked(D, self.shape[1], "directions")
        self.n_reads += 1
        return self._fields(directions)

    def weighted_sums(self, W: ArrayLike) -> Array:
        """(P, G) -> (G, N): weighted sums of the examples."""
        weights = self._checked(np.transpose(W), self.shape[0], "weights").T
        self.n_reads += 1
        return self._sums(weights)

    def sweep(self, D: ArrayLike, respond: Respond) -> Array:
        """Fields, then the sums under the weights with which ``respond`` answers; counts as one read."""
        directions = self._checked(D, self.shape[1], "directions")
        self.n_reads += 1
        weights = np.asarray(respond(slice(0, self.shape[0]), self._fields(directions)), dtype=np.float64)
        self._checked(weights.T, self.shape[0], "weights")
        return self._sums(weights)

    def square_norms(self) -> Array:
        """(P,): the sum of all squared norms, exact, in equal parts.

        Single norms are not drawn; the algorithms use their sum only (energy, noise variance), and its
        part that is not yet seen was drawn at the start, so that all later answers agree with it.
        """
        if self._rows is not None:
            return self._rows.square_norms()
        if self._square_sum is None:
            along = self._fields(self._shift[None, :])[self.informative, 0].sum()  # of rows that hold c
            count = int(self.informative.sum())
            noise = self._spread**2 * self._total_square
            self._square_sum = noise + 2.0 * along - count * float(self._shift @ self._shift)
        return np.full(self.shape[0], self._square_sum / self.shape[0])

    def to_dense(self) -> Array:
        """Draw all that was not asked about, given all that was, and return the matrix Y."""
        if self._rows is not None:
            return self._rows.X
        right, left = self._right, self._left
        U, A, L, C = right.vectors(), right.images(), left.vectors(), left.images()
        G = self._stream.standard_normal(self.shape)
        G -= L.T @ (L @ G)
        G -= (G @ U.T) @ U
        if self._unseen_dimension:
            G *= np.sqrt(self._unseen_square) / np.linalg.norm(G)
        G += A.T @ U
        G += L.T @ (C - (C @ U.T) @ U)
        G *= self._spread
        G[self.informative] += self._shift
        return G

    # ----------------------------------------------------------------------------------------------

    def _fields(self, directions: Array) -> Array:
        if self._rows is not None:
            return self._rows.fields(directions)
        out = np.empty((len(directions), self.shape[0]))
        for g, d in enumerate(directions):
            noise = self._answer(d, self._right, self._left)
            if noise is None:
                return self._in_full().fields(directions)
            np.multiply(noise, self._spread, out=out[g])
            out[g, self.informative] += d @ self._shift
        return out.T

    def _sums(self, weights: Array) -> Array:
        if self._rows is not None:
            return self._rows.weighted_sums(weights)
        out = np.empty((weights.shape[1], self.shape[1]))
        for g, w in enumerate(weights.T):
            noise = self._answer(np.ascontiguousarray(w), self._left, self._right)
            if noise is None:
                return self._in_full().weighted_sums(weights)
            out[g] = self._spread * noise + w[self.informative].sum() * self._shift
        return out

    def _answer(self, x: Array, here: _Side, there: _Side) -> Array | None:
        """The product of G (or its transpose) with x, from the law given all earlier answers.

        None if a new direction would take more memory than allowed.
        """
        if there.count == there.length:  # the other side has seen everything
            return there.combine(there.image_products(x))
        known, rest = here.split(x)
        answer = here.combine_images(known)
        length = float(np.linalg.norm(rest))
        if length <= NOTHING_NEW * float(np.linalg.norm(x)):
            return answer
        if here.count == self.max_directions:
            return None
        rest /= length
        fresh = self._stream.standard_normal(there.length)
        along = there.products(fresh)
        scale = self._share(there.length - there.count, float(fresh @ fresh - along @ along))
        # along the vectors that the other side has visited the answer is known: put it there
        fresh *= scale
        fresh += there.combine(there.image_products(rest) - scale * along)
        here.append(rest, fresh)
        answer += length * fresh
        return answer

    def _share(self, dimension: int, square: float) -> float:
        """Factor that gives normals in ``dimension`` directions the share of |G|² that falls to them.

        |G|² is drawn first, as chi-square; the squares of disjoint parts of G share it by a beta law, and
        are independent of the directions: so all of G stays standard normal, and its norm is known.
        """
        others = self._unseen_dimension - dimension
        part = self._unseen_square
        if others > 0:
            part *= self._stream.beta(0.5 * dimension, 0.5 * others)
        self._unseen_dimension = others
        self._unseen_square -= part
        return float(np.sqrt(part / square)) if dimension and square > 0.0 else 0.0

    def _in_full(self) -> Rows:
        needed = dense_bytes(self.shape[1], self.shape[0])
        if needed > self.memory:
            raise ConvergenceError(
                f"the algorithm visited more than {self.max_directions} directions, the most that "
                f"{self.memory} bytes hold, and the whole matrix needs {needed}; "
                "allow more memory or fewer iterations"
            )
        self._rows = Rows.of(self.to_dense())
        self._right, self._left = _Side(*self.shape[::-1]), _Side(*self.shape)
        return self._rows

    def _checked(self, values: ArrayLike, length: int, name: str) -> Array:
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{name} must be vectors of numbers") from None
        if array.ndim != 2 or array.shape[1] != length:
            raise DataError(f"{name} must be vectors of {length} numbers, not of shape {array.shape}")
        if not np.isfinite(array).all():
            raise DataError(f"{name} contain NaN or infinity")
        return array

    def __repr__(self) -> str:
        state = "drawn in full" if self._rows is not None else f"{self.n_directions} directions visited"
        return f"Dice({self.shape[0]} x {self.shape[1]}, {state}, {self.n_reads} reads)"


class _Side:
    """Orthonormal vectors that one side has visited, with the answer of the matrix to each."""

    def __init__(self, length: int, image_length: int) -> None:
        self.length, self.image_length = length, image_length
        self.count = 0
        self._vectors: list[Array] = []
        self._images: list[Array] = []

    def append(self, vector: Array, image: Array) -> None:
        block, row = divmod(self.count, _BLOCK)
        if row == 0:
            self._vectors.append(np.empty((_BLOCK, self.length)))
            self._images.append(np.empty((_BLOCK, self.image_length)))
        self._vectors[block][row] = vector
        self._images[block][row] = image
        self.count += 1

    def split(self, x: Array) -> tuple[Array, Array]:
        """Coefficients of x on the visited vectors, and what is left, orthogonal to rounding error."""
        coefficients = self.products(x)
        rest = x - self.combine(coefficients)
        if self.count and np.linalg.norm(rest) < 0.7 * np.linalg.norm(x):
            again = self.products(rest)  # "twice is enough" where the first pass cancelled digits
            rest -= self.combine(again)
            coefficients += again
        return coefficients, rest

    def products(self, x: Array) -> Array:
        return self._dot(self._vectors, x)

    def image_products(self, x: Array) -> Array:
        return self._dot(self._images, x)

    def combine(self, coefficients: Array) -> Array:
        return self._sum(self._vectors, coefficients, self.length)

    def combine_images(self, coefficients: Array) -> Array:
        return self._sum(self._images, coefficients, self.image_length)

    def vectors(self) -> Array:
        return np.concatenate([*self._used(self._vectors), np.empty((0, self.length))])

    def images(self) -> Array:
        return np.concatenate([*self._used(self._images), np.empty((0, self.image_length))])

    def _used(self, blocks: list[Array]) -> list[Array]:
        return [block[: self.count - k * _BLOCK] for k, block in enumerate(blocks)]

    def _dot(self, blocks: list[Array], x: Array) -> Array:
        return np.concatenate([*(block @ x for block in self._used(blocks)), np.empty(0)])

    def _sum(self, blocks: list[Array], coefficients: Array, length: int) -> Array:
        total = np.zeros(length)
        for k, block in enumerate(self._used(blocks)):
            total += coefficients[k * _BLOCK : k * _BLOCK + len(block)] @ block
        return total
