"""Labelled examples as the mixture sees them: working coordinates, and one read of the data as E step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from outlearn.exceptions import DataError
from outlearn.inference.covariance import Covariance, Structure, moment
from outlearn.inference.mapped import Mapped
from outlearn.inference.mixture import Mixture, design_of, log_sum, simplex
from outlearn.inference.rows import Rows

__all__ = ["MixtureData", "Statistics", "contrast_centers", "moment_mean"]

Array = NDArray[np.float64]

_SMALL = 1 << 17  # cells: so small a sparse matrix is faster written out (1 MB)
_PIECE = 1 << 18  # cells that are written out at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """Expected sufficient statistics: all that the M step needs of the data."""

    sums: Array  # (K+1, n): sum of examples by state
    counts: Array  # (K, K+1): weight by label and state
    garbage: Any  # second moment of the garbage (only where it has its own covariance)
    log_likelihood: float


class MixtureData:
    """Labelled examples in the working coordinates of one covariance structure, with fixed weights.

    Coordinates are centred at the weighted mean, and for "tied" in units of the features' spread; the data
    stay as they are, and are seen so as they are read. With few examples in many dimensions and a structure
    that knows no axes (spherical, tied), examples are rotated into the P directions that they span: nothing
    is lost, since every centre is a sum of examples.
    """

    def __init__(
        self,
        X: Any,
        labels: NDArray[np.intp],
        n_classes: int,
        structure: Structure,
        *,
        sample_weight: Array | None = None,
        n_threads: int = 1,
        like: Any = None,
    ) -> None:
        self.labels = labels
        self.n_classes = n_classes
        self.structure = structure
        p, n = X.shape
        self.n_total = int(n)
        self.weights = np.ones(p) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        total = self.weights.sum()
        known = like is not None and like.origin is not None
        self.origin = like.origin if known else weighted_sum(X, self.weights) / total
        self.scale = np.ones(n)
        self.basis: Array | None = None  # of the span, where it is kept (tied)
        self.span: Array | None = None  # else: sums of examples that are its basis
        dense = not sparse.issparse(X)
        if structure == "tied" and not dense:
            raise DataError("covariance 'tied' needs dense data, X is sparse")
        if not dense and p * n <= _SMALL:
            X, dense = X.toarray(), True
        self.X = X
        self.raw = raw = Rows.of(X, center=self.origin, n_threads=n_threads)
        self.rows: Rows | Mapped = raw
        if structure == "tied":
            spread = like.scale if known else self._spread(total)
            self.scale = np.where(spread > 0.0, spread, 1.0)
        few = {"tied": p < n, "spherical": 4 * p < n, "diag": False}[structure]
        if like is None and dense and few:
            self._rotate()
        elif structure == "tied":
            origin = np.zeros(n)
            self.rows = Mapped(
                raw, self._in_units, self._in_units, lambda: self.square_distances(None, origin)
            )
        self.use(self.weights)

    def _spread(self, total: float) -> Array:
        parts = [self.weights[r] @ np.square(self._standard(r)) for r in self._pieces()]
        return np.asarray(np.sqrt(np.sum(parts, axis=0) / total))

    def _pieces(self, rows: slice | None = None) -> list[slice]:
        """Short blocks of rows: so few may be written out in other coordinates."""
        first, last = (0, len(self.labels)) if rows is None else (rows.start, rows.stop)
        step = max(1, _PIECE // self.n_total)
        return [slice(k, min(last, k + step)) for k in range(first, last, step)]

    def _standard(self, rows: slice) -> Array:
        """A block of rows, centred and in units of the spread."""
        Z = self.raw.X[rows]
        Z = (Z.toarray() if sparse.issparse(Z) else Z) - self.origin
        return np.asarray(Z / self.scale if self.structure == "tied" else Z)

    def _in_units(self, vectors: Array) -> Array:
        return vectors / self.scale

    def _rotate(self) -> None:
        """Work in the span of the examples: their inner products, and which sums of them are its basis."""
        p, n = self.X.shape
        gram = np.zeros((p, p))
        width = max(1, _SMALL // p)
        strips = [slice(k, min(n, k + width)) for k in range(0, n, width)]
        for columns in strips:
            strip = self._strip(columns)
            gram += strip @ strip.T
        values, vectors = linalg.eigh(gram, overwrite_a=True, check_finite=False)
        keep = values > max(values[-1], 0.0) * 1e-10
        vectors, roots = vectors[:, keep], np.sqrt(values[keep])
        self.span = vectors / roots
        if self.structure == "tied":
            self.basis = np.empty((len(roots), n))
            for columns in strips:
                self.basis[:, columns] = self.span.T @ self._strip(columns)
        self._rotated = np.ascontiguousarray(vectors * roots)
        self.rows = Rows.of(self._rotated)

    def _strip(self, columns: slice) -> Array:
        return np.asarray((self.X[:, columns] - self.origin[columns]) / self.scale[columns])

    def use(self, weights: Array) -> MixtureData:
        """Count example μ ``weights[μ]`` times from now on (zero: held out)."""
        self.weights = weights
        self.count = float(weights.sum())
        self.label_weights = np.zeros((len(weights), self.n_classes))
        self.label_weights[np.arange(len(weights)), self.labels] = weights
        self.label_counts = self.label_weights.sum(axis=0)
        self.signs: Array = np.where(self.labels == 1, 1.0, -1.0)  # of two classes
        self.total = self._moments(weights)
        self.variance = moment_mean(self.structure, self.total, self.n_total) / self.count
        self.frequencies = self.label_counts / self.count
        self.hebb = self._hebb()
        return self

    def _hebb(self) -> Array:
        """Centres that take every label at its word: the contrasts of the class means (K-1, n)."""
        self.label_sums = self.rows.weighted_sums(self.label_weights)
        return contrast_centers(self.label_sums, self.label_counts)

    def working(self, vectors: Array) -> Array:
        """Differences in the units of the data, in working coordinates."""
        if self.basis is not None:
            return (vectors / self.scale) @ self.basis.T
        if self.span is not None:
            return np.asarray(self.raw.fields(vectors).T @ self.span)
        return vectors / self.scale

    def outward(self, vectors: Array) -> Array:
        """Differences in working coordinates, in the units of the data."""
        if self.basis is not None:
            return (vectors @ self.basis) * self.scale
        if self.span is not None:
            return self.raw.weighted_sums(self.span @ vectors.T)
        return vectors * self.scale

    def folded(
        self, members: Any, signs: Array | None, counts: Array | None, midpoint: Array
    ) -> Rows | Mapped:
        """Some examples, centred at a point of the working coordinates and folded by signs."""
        rotated = self.span is not None
        X = self._rotated if rotated else self.raw.X
        X = X if isinstance(members, slice) else X[members]
        center = midpoint if rotated else self.origin + self.scale * midpoint
        rows = Rows.of(X, signs=signs, sample_weight=counts, center=center, n_threads=self.raw.n_threads)
        if rotated or self.structure != "tied":
            return rows

        def norms() -> Array:
            return self.square_distances(None, midpoint)[members]

        return Mapped(rows, self._in_units, self._in_units, norms)

    def held_out(self, weights: Array) -> MixtureData:
        """Return the same examples in the same coordinates under other weights."""
        other = object.__new__(MixtureData)
        other.__dict__.update(self.__dict__)
        return other.use(weights)

    def block(self, rows: slice) -> Array:
        """Working coordinates of a block of rows."""
        return self._standard(rows) if self.span is None else np.asarray(self._rotated[rows])

    def _at(self, rows: slice) -> Array:
        """As :meth:`block`, without numbers where the structure asks for norms alone."""
        return np.empty((rows.stop - rows.start, 0)) if self.structure == "spherical" else self.block(rows)

    def square_distances(self, covariance: Covariance | None, point: Array) -> Array:
        """(P,): squared distances of all examples from a point of the working coordinates.

        In units of a covariance, or as they are.
        """
        out = np.empty(len(self.labels))
        for r in self._pieces():
            Z = self.block(r) - point
            out[r] = np.einsum("ij,ij->i", Z, Z) if covariance is None else covariance.square_distances(Z)
        return out

    def _norms(self) -> Array:
        """Squared norms, where the structure makes use of them."""
        return self.rows.square_norms() if self.structure == "spherical" else np.empty(len(self.labels))

    def _moments(self, weights: Array) -> Any:
        if self.structure == "spherical":
            return float(weights @ self.rows.square_norms())
        return sum(moment(self.structure, self.block(r), weights[r]) for r in self._pieces())

    # -- E step ------------------------------------------------------------------------------------

    def responsibilities(self, mixture: Mixture, spread: float = 0.0, hard: bool = False) -> Array:
        """(P, K+1): probability of every state of every example, given its label."""
        out = np.empty((len(self.labels), self.n_classes + 1))
        self._sweep(mixture, spread, hard, out)
        return out

    def statistics(self, mixture: Mixture, *, spread: float = 0.0, hard: bool = False) -> Statistics:
        """Expected sufficient statistics under the mixture, in one read of the data.

        ``spread`` is subtracted from the log probability of every informative state: half of tr(S⁻¹ Cov C)
        where the uncertainty of the centres is taken along (Eq. henergy's ⟨J²⟩).
        """
        return self._sweep(mixture, spread, hard, None)

    def statistics_of(self, W: Array) -> Statistics:
        """Sufficient statistics under given probabilities of the states (P, K+1)."""
        weighted = W * self.weights[:, None]
        garbage = self._moments(weighted[:, -1])
        return Statistics(
            sums=self.rows.weighted_sums(weighted),
            counts=self.label_weights.T @ W,
            garbage=garbage,
            log_likelihood=float("nan"),
        )

    def _sweep(self, mixture: Mixture, spread: float, hard: bool, out: Array | None) -> Statistics:
        if out is None and self._is_plain(mixture):
            return self._sweep_plain(mixture, spread, hard)
        D, b = mixture.directions()
        table = mixture.log_states() + b
        table[:, :-1] -= spread
        norms = self._norms()
        parts: list[tuple[float, Array, Any]] = []
        own = not mixture.shared

        def respond(rows: slice, H: Array) -> Array:
            H += table[self.labels[rows]]
            if own:
                for piece in self._pieces(rows):
                    H[_within(rows, piece), -1] += mixture.contrast(self._at(piece), norms[piece])
            W = H.T.copy()  # one row per state: sums over few states are then fast
            top = W.max(axis=0)
            np.exp(np.subtract(W, top, out=W), out=W)
            if hard:
                W[...] = W == 1.0
                W /= W.sum(axis=0)
            else:
                sums = W.sum(axis=0)
                W /= sums
                top += np.log(sums)
            if out is not None:
                out[rows] = W.T
            weights = self.weights[rows]
            likelihood = float(weights @ top)
            counts = self.label_weights[rows].T @ W.T
            W *= weights
            garbage: Any = 0.0
            if own:
                garbage = sum(
                    moment(self.structure, self._at(piece), W[-1, _within(rows, piece)], norms[piece])
                    for piece in self._pieces(rows)
                )
            parts.append((likelihood, counts, garbage))
            return W.T

        sums = self.rows.sweep(D, respond)
        likelihood = sum(part[0] for part in parts) - 0.5 * mixture.covariance.trace_solve(self.total)
        return Statistics(
            sums=sums,
            counts=np.sum([part[1] for part in parts], axis=0),
            garbage=sum(part[2] for part in parts),
            log_likelihood=likelihood,
        )

    def _is_plain(self, mixture: Mixture) -> bool:
        """Whether two classes of right labels and garbage around their midpoint are all there is."""
        X = self.raw.X if self.span is None else self._rotated
        return (
            self.n_classes == 2
            and mixture.shared
            and mixture.states[1] == 0.0
            and mixture.states[0] > 0.0
            and mixture.states[2] > 0.0
            and mixture.garbage_center is mixture.midpoint
            and isinstance(X, np.ndarray)
            and X.flags.c_contiguous
        )

    def _sweep_plain(self, mixture: Mixture, spread: float, hard: bool) -> Statistics:
        """The same statistics by the compiled pass of the paper's algorithm (Eq. postv).

        The log odds of informative against garbage are y(z - m)·S⁻¹C plus what depends on y alone.
        """
        D, b = mixture.directions()
        table = mixture.log_states() + b
        d = 0.5 * (D[1] - D[0])
        odds = table[[0, 1], [0, 1]] - table[:, 2] - spread
        shift, offset = 0.5 * (odds[0] - odds[1]), 0.5 * (odds[0] + odds[1])
        sums, totals, _, gain = self.rows.select_by_label(
            d, shift, offset, self.signs, self.weights, hard=hard
        )
        by_label, everything = self.label_counts, self.label_sums.sum(axis=0)
        likelihood = gain + float(by_label @ table[:, 2]) + float(D[2] @ everything)
        counts = np.zeros((2, 3))
        counts[[0, 1], [0, 1]] = totals
        counts[:, 2] = by_label - totals
        return Statistics(
            sums=np.vstack([sums, everything - sums.sum(axis=0)]),
            counts=counts,
            garbage=0,
            log_likelihood=likelihood - 0.5 * mixture.covariance.trace_solve(self.total),
        )

    def log_densities(self, mixture: Mixture, leave_out: bool = False) -> Array:
        """(P, K+1): ln p(x | state), up to a term that all states of an example share.

        ``leave_out`` takes an example's own pull on the centres out of its fields (to first order, as the
        cavity field of message passing): where P is about N, an example that was accepted once would
        otherwise vouch for itself.
        """
        D, b = mixture.directions()
        H = self.rows.fields(D) + b
        norms = self._norms()
        if not mixture.shared:
            for rows in self._pieces():
                H[rows, -1] += mixture.contrast(self._at(rows), norms[rows])
        if leave_out:
            L = H + mixture.log_states()[self.labels]
            W = np.exp(L - log_sum(L)[:, None])
            n_states = (W * self.weights[:, None]).sum(axis=0)
            design, penalty = design_of(mixture, own_center=mixture.garbage_center is not mixture.midpoint)
            normal = (design.T * n_states) @ design + np.diag(penalty + 1e-12 * self.count)
            pull = design @ np.linalg.solve(normal, design.T)
            distances = np.concatenate(
                [mixture.covariance.square_distances(self._at(r), norms[r]) for r in self._pieces()]
            )
            H -= (W @ pull) * (distances * np.minimum(self.weights, 1.0))[:, None]
        return H

    def inlier_proba(self, mixture: Mixture, leave_out: bool = False) -> Array:
        """(P,): probability that each example is informative and rightly labelled."""
        H = self.log_densities(mixture, leave_out) + mixture.log_states()[self.labels]
        own = H[np.arange(len(self.labels)), self.labels]
        return np.asarray(np.exp(own - log_sum(H)))

    def log_joint(self, mixture: Mixture, leave_out: bool = False) -> Array:
        """(P,): ln p(x, y) of every example; ``leave_out`` takes its own pull on the centres out."""
        H = self.log_densities(mixture, leave_out) + mixture.log_states()[self.labels]
        norms = self._norms()
        distances = [mixture.covariance.square_distances(self._at(r), norms[r]) for r in self._pieces()]
        return np.asarray(log_sum(H) - 0.5 * np.concatenate(distances))

    def log_label_given_input(self, mixture: Mixture, leave_out: bool = False) -> Array:
        """(P,): log p(y | x) of the observed labels under the contaminated model."""
        H = self.log_densities(mixture, leave_out)
        table = mixture.log_states()
        joint = np.stack([log_sum(H + row) for row in table], axis=1)
        own = joint[np.arange(len(self.labels)), self.labels]
        return np.asarray(own - log_sum(joint))


def _within(rows: slice, piece: slice) -> slice:
    return slice(piece.start - rows.start, piece.stop - rows.start)


def weighted_sum(X: Any, weights: Array) -> Array:
    """Sum of rows in double precision, without a wide copy of single-precision data."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return np.asarray(weights @ X, dtype=np.float64).ravel()
    step = max(1, _SMALL // X.shape[1])
    parts = [weights[k : k + step] @ X[k : k + step] for k in range(0, len(X), step)]
    return np.asarray(np.sum(parts, axis=0))


def contrast_centers(sums: Array, counts: Array) -> Array:
    """Centres (K-1, n) from the classes' sums and counts."""
    k = len(counts)
    means = sums / np.maximum(counts, 1e-12)[:, None]
    return np.asarray(simplex(k).T @ (means - means.mean(axis=0)) * ((k - 1.0) / k))


def moment_mean(structure: Structure, value: Any, n_total: int) -> float:
    """Mean variance times count in a second moment of any form."""
    if structure == "spherical":
        return float(value) / n_total
    if structure == "diag":
        return float(value.sum()) / n_total
    return float(np.trace(value)) / n_total
