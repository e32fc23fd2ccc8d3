"""A fitted mixture in the units of the data: what it says of new examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from outlearn.exceptions import DataError
from outlearn.inference.covariance import Covariance
from outlearn.inference.mixture import Mixture, log_sum
from outlearn.inference.mixture_data import MixtureData

__all__ = ["FittedMixture", "project"]

Array = NDArray[np.float64]
_BLOCK_CELLS = 1 << 18
_FARTHEST = 1e100  # from the origin, in units of the noise: squares stay finite


def project(X: Any, D: Array) -> Array:
    """X·D for every row of D, in double precision, without a wide copy of single-precision data."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return np.asarray(X @ D.T, dtype=np.float64)
    step = max(1, _BLOCK_CELLS // X.shape[1])
    return np.concatenate([X[k : k + step] @ D.T for k in range(0, len(X), step)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedMixture:
    """A mixture and the map z = ((x - origin)/scale) basisᵀ into its coordinates (basis None: no turn)."""

    mixture: Mixture
    origin: Array
    scale: Array
    basis: Array | None

    @classmethod
    def of(cls, data: MixtureData, mixture: Mixture) -> FittedMixture:
        """Take the coordinates along with the mixture; where it knows no axes, those of the data will do."""
        if data.span is not None and data.basis is None:
            points = np.vstack([mixture.midpoint, mixture.garbage_center, mixture.centers])
            midpoint, garbage_center, *centers = data.outward(points)
            own = mixture.garbage_center is not mixture.midpoint
            mixture = replace(
                mixture,
                midpoint=midpoint,
                garbage_center=garbage_center if own else midpoint,
                centers=np.array(centers),
            )
        return cls(mixture=mixture, origin=data.origin, scale=data.scale, basis=data.basis)

    # -- in the units of the data --------------------------------------------------------------------

    def outward(self, vectors: Array) -> Array:
        """Working coordinates to the units of the data, for differences (no origin added)."""
        return (vectors if self.basis is None else vectors @ self.basis) * self.scale

    def inward(self, vectors: Array) -> Array:
        """Differences in the units of the data to working coordinates."""
        scaled = vectors / self.scale
        return scaled if self.basis is None else scaled @ self.basis.T

    @property
    def means(self) -> Array:
        """(K, N): the class means."""
        return self.origin + self.outward(self.mixture.means)

    @property
    def midpoint(self) -> Array:
        """(N,): the point that the class means surround."""
        return self.origin + self.outward(self.mixture.midpoint[None])[0]

    @property
    def garbage_center(self) -> Array:
        """(N,): the middle of the outliers' cloud."""
        return self.origin + self.outward(self.mixture.garbage_center[None])[0]

    @property
    def log_volume(self) -> float:
        """Sum of ln scale: what a density gains on its way to working coordinates."""
        return float(np.log(self.scale).sum())

    def noise_variance(self) -> float:
        """Mean variance of a feature within a class, in the units of the data."""
        return _raw_variance(self.mixture.covariance, self.scale, self.basis)

    def garbage_variance(self) -> float:
        """Mean variance of a feature among the outliers, in the units of the data."""
        return _raw_variance(self.mixture.garbage_covariance, self.scale, self.basis)

    def directions(self) -> tuple[Array, Array]:
        """D (K+1, N), b: ln N(x; state) = D·x + b plus what is quadratic in x."""
        D, b = self.mixture.directions()
        D = (D if self.basis is None else D @ self.basis) / self.scale
        return D, b - D @ self.origin

    # -- of examples ---------------------------------------------------------------------------------

    def log_densities(self, X: Any) -> Array:
        """(P, K+1): ln p(x | state) up to a term that all states of an example share."""
        D, b = self.directions()
        H = project(X, D) + b
        if not self.mixture.shared:
            for rows, Z, rest in self._blocks(X):
                own = _square_distances(self.mixture.garbage_covariance, Z, rest)
                H[rows, -1] += 0.5 * (_square_distances(self.mixture.covariance, Z, rest) - own)
        return H

    def log_density(self, X: Any) -> Array:
        """(P,): ln p(x) in the units of the data."""
        states = np.append((1.0 - self.mixture.states[2]) * self.mixture.class_prior, self.mixture.states[2])
        with np.errstate(divide="ignore"):
            H = self.log_densities(X) + np.log(states)
        out = log_sum(H)
        for rows, Z, rest in self._blocks(X):
            out[rows] -= 0.5 * _square_distances(self.mixture.covariance, Z, rest)
        return np.asarray(out - self.log_volume)

    def class_log_odds(self, X: Any) -> Array:
        """(P, K): ln p(class | x, informative)."""
        with np.errstate(divide="ignore"):
            H = self.log_densities(X)[:, :-1] + np.log(self.mixture.class_prior)
        return np.asarray(H - log_sum(H)[:, None])

    def label_proba(self, X: Any, coin: Array | None = None) -> Array:
        """(P, K): p(y | x) on the contaminated stream; the label of an outlier is a coin, fair if None."""
        m, k = self.mixture, self.mixture.n_classes
        right, wrong, garbage = m.states
        with np.errstate(divide="ignore"):
            H = self.log_densities(X) + np.log(np.append((right + wrong) * m.class_prior, garbage))
        H -= log_sum(H)[:, None]
        posterior = np.exp(H)
        true = right / (right + wrong) if right + wrong > 0.0 else 1.0
        flip = (1.0 - true) / (k - 1.0)
        proba = (true - flip) * posterior[:, :k] + flip * posterior[:, :k].sum(axis=1, keepdims=True)
        proba += posterior[:, k:] * (1.0 / k if coin is None else coin)
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))

    def inlier_proba(self, X: Any, labels: NDArray[np.intp]) -> Array:
        """(P,): probability that an example is informative and rightly labelled."""
        H = self.log_densities(X) + self.mixture.log_states()[labels]
        own = H[np.arange(len(labels)), labels]
        return np.asarray(np.exp(own - log_sum(H)))

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Array, Array]]:
        """Working coordinates by blocks of rows, and the squared length of what they leave out."""
        p, n = X.shape
        step = max(1, _BLOCK_CELLS // n)
        for start in range(0, p, step):
            rows = slice(start, min(p, start + step))
            block = X[rows]
            block = block.toarray() if sparse.issparse(block) else np.asarray(block, dtype=np.float64)
            with np.errstate(over="ignore"):
                Z = (block - self.origin) / self.scale
            if not (np.abs(Z) < _FARTHEST).all():
                raise DataError(f"X holds numbers too large to square (in rows {rows.start} to {rows.stop})")
            if self.basis is None:
                yield rows, Z, np.zeros(len(Z))
            else:
                inside = Z @ self.basis.T
                rest = np.einsum("ij,ij->i", Z, Z) - np.einsum("ij,ij->i", inside, inside)
                yield rows, inside, np.maximum(rest, 0.0)


def _square_distances(covariance: Covariance, Z: Array, rest: Array) -> Array:
    distances = covariance.square_distances(Z)
    outside = covariance.values if covariance.structure == "spherical" else covariance.outside
    return distances + rest / float(outside) if rest.any() else distances


def _raw_variance(covariance: Covariance, scale: Array, basis: Array | None) -> float:
    if covariance.structure == "spherical":
        return float(covariance.values)
    if covariance.structure == "diag":
        return float((covariance.values * scale**2).mean())
    if basis is None:
        return float((np.diag(covariance.values) * scale**2).mean())
    diagonal = np.einsum("ij,ik,kj->j", basis, covariance.values, basis, optimize=True)
    diagonal += covariance.outside * (1.0 - np.einsum("ij,ij->j", basis, basis))
    return float((diagonal * scale**2).mean())
