"""Noise covariances of a cluster: one number, one per feature, or a full shrunk matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outlearn.exceptions import ParameterError

__all__ = ["STRUCTURES", "Covariance", "Structure", "oracle_shrinkage", "passes_for_a_sphere"]

Array = NDArray[np.float64]
Structure = Literal["spherical", "diag", "tied"]
STRUCTURES: tuple[Structure, ...] = ("spherical", "diag", "tied")

_LEAST_FREEDOM = 8.0
_DEVIATIONS = 3.0  # standard deviations within which a statistic is what a sphere would give
_MOST_CELLS = 400_000
_SPIKE = 1.1  # of the edge of what noise gives, from where an eigenvalue is a signal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covariance:
    """A covariance S in ``n_total`` dimensions of which the working coordinates may span a part.

    ``values`` is a number (spherical), a vector (diag) or a matrix (tied). When data of P < N examples are
    rotated into their own span, the directions left out have variance ``outside``: they hold no data,
    but they count in the determinant and in the distance of a new example.

    >>> s = Covariance(structure="diag", values=np.array([1.0, 4.0]), n_total=2)
    >>> s.solve(np.array([[2.0, 2.0]])).tolist(), round(s.log_det, 4)
    ([[2.0, 0.5]], 1.3863)
    """

    structure: Structure
    values: Any
    n_total: int
    outside: float = 0.0
    _factor: Any = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        object.__setattr__(self, "values", values)
        if self.structure == "tied":
            object.__setattr__(self, "_factor", linalg.cholesky(values, lower=True, check_finite=False))

    @property
    def n_working(self) -> int:
        """Number of working coordinates; ``n_total`` unless the data were rotated into their span."""
        return self.n_total if self.structure == "spherical" else len(self.values)

    @property
    def mean_variance(self) -> float:
        """Trace over dimension."""
        if self.structure == "spherical":
            return float(self.values)
        if self.structure == "diag":
            return float(self.values.mean())
        rest = self.n_total - len(self.values)
        return float((np.trace(self.values) + rest * self.outside) / self.n_total)

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant, all ``n_total`` directions included."""
        if self.structure == "spherical":
            return float(self.n_total * np.log(self.values))
        if self.structure == "diag":
            return float(np.log(self.values).sum())
        rest = self.n_total - len(self.values)
        inside = 2.0 * np.log(np.diag(self._factor)).sum()
        return float(inside + (rest * np.log(self.outside) if rest else 0.0))

    def solve(self, B: Array) -> Array:
        """S⁻¹ applied to every row of B."""
        if self.structure == "tied":
            return linalg.cho_solve((self._factor, True), B.T, check_finite=False).T
        return B / self.values

    def square_distances(self, Z: Array, norms: Array | None = None) -> Array:
        """z·S⁻¹z for every row; ``norms`` = |z|² where they are at hand."""
        if self.structure == "spherical":
            square = np.einsum("ij,ij->i", Z, Z) if norms is None else norms
            return square / float(self.values)
        if self.structure == "diag":
            return (Z * Z) @ (1.0 / self.values)
        half = linalg.solve_triangular(self._factor, Z.T, lower=True, check_finite=False)
        return np.einsum("ji,ji->i", half, half)

    def trace_solve(self, moment: Any) -> float:
        """tr(S⁻¹ M) for a second moment M of this structure (see :func:`moment`)."""
        if self.structure == "spherical":
            return float(moment) / float(self.values)
        if self.structure == "diag":
            return float((moment / self.values).sum())
        return float(np.trace(linalg.cho_solve((self._factor, True), moment, check_finite=False)))

    def scaled(self, factor: float) -> Covariance:
        """Return the same shape, ``factor`` times as wide."""
        return Covariance(
            structure=self.structure,
            values=self.values * factor,
            n_total=self.n_total,
            outside=self.outside * factor,
        )


def moment(structure: Structure, Z: Array, weights: Array, norms: Array | None = None) -> Any:
    """Weighted second moment of rows about the origin: its trace, its diagonal or all of it."""
    if structure == "spherical":
        return float(weights @ (np.einsum("ij,ij->i", Z, Z) if norms is None else norms))
    if structure == "diag":
        return weights @ (Z * Z)
    return (Z * weights[:, None]).T @ Z


def cross(structure: Structure, U: Array, V: Array) -> Any:
    """Σ_g u_g v_gᵀ in the same three forms."""
    if structure == "spherical":
        return float(np.vdot(U, V))
    if structure == "diag":
        return (U * V).sum(axis=0)
    both = U.T @ V
    return 0.5 * (both + both.T)


def estimate(
    structure: Structure, scatter: Any, count: float, *, n_total: int, target: Any, pull: float, floor: float
) -> Covariance:
    """Most probable covariance for a scatter of ``count`` examples, shrunk towards ``target``.

    (scatter + pull·target)/(count + pull): the maximum of an inverse-Wishart posterior with ``pull``
    examples' worth of prior, equal to the linear shrinkage of intensity pull/(count + pull).
    """
    if structure == "spherical":
        value = (float(scatter) / n_total + pull * float(target)) / (count + pull)
        return Covariance(structure=structure, values=max(value, floor), n_total=n_total)
    if structure == "diag":
        values = (np.maximum(scatter, 0.0) + pull * target) / (count + pull)
        return Covariance(structure=structure, values=np.maximum(values, floor), n_total=n_total)
    share = pull / (count + pull)
    matrix = np.asarray(scatter) / (count + pull)
    matrix = matrix + (share * float(target) + floor) * np.eye(len(matrix))
    return Covariance(
        structure=structure, values=matrix, n_total=n_total, outside=share * float(target) + floor
    )


def oracle_shrinkage(scatter: Array, count: float, n_total: int) -> float:
    """Intensity that shrinks a covariance towards the sphere (OAS), for ``count`` effective examples.

    The formula of Chen, Wiesel, Eldar and Hero (2010); only traces are needed, so that a scatter known in
    the span of the data is enough.

    >>> round(oracle_shrinkage(np.diag([1.0, 1.0, 4.0]) * 10, 10, 3), 4)
    0.6774
    """
    if count <= 0.0:
        raise ParameterError("count", count, "a number > 0")
    s = np.asarray(scatter) / count
    trace, square = float(np.trace(s)), float(np.vdot(s, s))
    top = (1.0 - 2.0 / n_total) * square + trace**2
    bottom = (count + 1.0 - 2.0 / n_total) * (square - trace**2 / n_total)
    return 1.0 if bottom <= 0.0 else float(min(1.0, top / bottom))


def passes_for_a_sphere(X: Array, labels: NDArray[np.intp], weights: Array) -> bool:
    """Whether two sharp tests find nothing but one variance and no correlations within labels.

    The variances of the features scatter as chi-square says, and John's statistic
    U = tr (S/s - I)^2 / N, with s the mean variance, is normal: f U - N = 1 +- 2 for f degrees of freedom,
    however large N is (Ledoit and Wolf 2002). A direction that stands out of the noise is taken out of both:
    along it the centres of informative examples and outliers differ. Every so many rows are enough of many.

    >>> rng = np.random.default_rng(0)
    >>> X, labels = rng.standard_normal((300, 500)), np.arange(300) % 2
    >>> passes_for_a_sphere(X, labels, np.ones(300))
    True
    >>> passes_for_a_sphere(X * np.linspace(0.9, 1.1, 500), labels, np.ones(300))
    False
    """
    every = max(1, X.size // _MOST_CELLS)
    X, labels, weights = np.asarray(X[::every], dtype=np.float64), labels[::every], weights[::every]
    n = X.shape[1]
    of_label = np.zeros((len(labels), int(labels.max()) + 1))
    of_label[np.arange(len(labels)), labels] = weights
    counts = of_label.sum(axis=0)
    freedom = float(counts.sum()) - float((counts > 0.0).sum())
    if freedom < _LEAST_FREEDOM or n < 2:
        return False
    Z = X - ((of_label.T @ X) / np.maximum(counts, 1e-300)[:, None])[labels]
    Z *= np.sqrt(weights / freedom)[:, None]
    variances = np.einsum("ij,ij->j", Z, Z)
    mean = float(variances.mean())
    if mean == 0.0:
        return False
    gram = Z @ Z.T if len(Z) < n else Z.T @ Z
    (top,), vector = linalg.eigh(gram, subset_by_index=[len(gram) - 1] * 2, check_finite=False)
    trace, squares = n * mean, float(np.vdot(gram, gram))
    if top > _SPIKE * mean * (1.0 + np.sqrt(n / freedom)) ** 2:
        direction = vector[:, 0] if len(gram) == n else Z.T @ vector[:, 0] / np.sqrt(top)
        trace, squares = trace - top, squares - top**2
        mean = trace / (n - 1)
        variances = variances - (top - mean) * direction**2
        squares += mean**2
        trace += mean
    scatter = 0.5 * freedom * float(((variances / mean - 1.0) ** 2).sum())
    johns = squares / mean**2 / n - 1.0
    spread = np.sqrt((2.0 + 12.0 / freedom) * n)  # fourth moment of chi-square
    return bool(scatter <= n + _DEVIATIONS * spread and abs(freedom * johns - n - 1.0) <= 2.0 * _DEVIATIONS)
