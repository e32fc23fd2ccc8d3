"""EM for the contaminated mixture: informative examples, wrong labels and garbage, K classes.

The density of an example (x, y), with state k (informative, of class k) or garbage::

    p(x, y, k) = ρ_k N(x; μ_k, S) · { 1 - ε - λ  if y = k;  λ/(K-1)  otherwise }
    p(x, y, garbage) = ε q_y N(x; m₀, S₀)

q is the observed frequency of the labels: garbage may not know the label, else it would become one more
cluster of one of the classes.
The class means are μ_k = m + v_k·C: one midpoint m and K - 1 centres C, with v_k the corners of a regular
simplex (±1 for two classes) and C ~ N(0, τ²). For two classes, spherical noise and λ = 0 this is the
paper's model (Eqs. distexam, distv) of y(x - m), with C its centre and m a midpoint that is learned: free
class means would carry twice the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outlearn.inference.covariance import Covariance

__all__ = ["Beliefs", "Mixture", "design_of", "log_sum", "simplex"]

Array = NDArray[np.float64]


@lru_cache(maxsize=32)
def simplex(n_classes: int) -> Array:
    """Corners of the regular simplex around 0 with unit length: (K, K-1); -1 and +1 for two classes.

    >>> simplex(2).ravel().round(12).tolist()
    [-1.0, 1.0]
    """
    corners = -linalg.helmert(n_classes).T
    return np.asarray(corners * np.sqrt(n_classes / (n_classes - 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """What is given (a number) and what is learned (None).

    ``label_noise = 0`` leaves wrong labels out of the model. ``garbage`` says what the outliers' cloud has of
    its own: nothing ("shared"), its covariance ("spread") or its covariance and its centre ("free").
    """

    contamination: float | None = None
    label_noise: float | None = 0.0
    noise_variance: float | None = None
    center_variance: float | None = None
    garbage: str = "shared"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Parameters of the contaminated mixture, in the coordinates of the data it was fitted to."""

    midpoint: Array  # (n,)
    centers: Array  # (K-1, n): C
    garbage_center: Array  # (n,)
    covariance: Covariance
    garbage_covariance: Covariance
    states: Array  # (3,): right label, wrong label, garbage
    class_prior: Array  # (K,): ρ
    garbage_labels: Array  # (K,): q
    center_variance: float

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.class_prior)

    @property
    def means(self) -> Array:
        """(K, n): the class means."""
        return self.midpoint + simplex(self.n_classes) @ self.centers

    @property
    def shared(self) -> bool:
        """Whether garbage has the classes' covariance."""
        return self.garbage_covariance is self.covariance

    def directions(self) -> tuple[Array, Array]:
        """D (K+1, n) and constants b: ln N(z; state) = D·z + b - z·S⁻¹z/2 (garbage: with its own S₀)."""
        means = np.vstack([self.means, self.garbage_center])
        D = self.covariance.solve(means)
        if not self.shared:
            D[-1] = self.garbage_covariance.solve(means[-1:])[0]
        b = -0.5 * np.einsum("ij,ij->i", D, means) - 0.5 * self.covariance.log_det
        if not self.shared:
            b[-1] += 0.5 * (self.covariance.log_det - self.garbage_covariance.log_det)
        return D, b - 0.5 * self.covariance.n_total * np.log(2 * np.pi)

    def log_states(self) -> Array:
        """(K, K+1): log p(y, state) before x is seen."""
        k = self.n_classes
        right, wrong, garbage = self.states
        table = np.full((k, k + 1), wrong / (k - 1.0))
        np.fill_diagonal(table, right)
        table[:, :k] *= self.class_prior
        table[:, k] = garbage * self.garbage_labels
        with np.errstate(divide="ignore"):
            return np.log(table)

    def contrast(self, Z: Array, norms: Array | None = None) -> Array | float:
        """What ln N(z; garbage) has beyond :meth:`directions` when its covariance is its own."""
        if self.shared:
            return 0.0
        own = self.garbage_covariance.square_distances(Z, norms)
        return 0.5 * (self.covariance.square_distances(Z, norms) - own)


def design_of(mixture: Mixture, own_center: bool) -> tuple[Array, Array]:
    """Mean of every state as a sum of (midpoint, centres, garbage centre), and the prior's precision."""
    k = mixture.n_classes
    design = np.zeros((k + 1, k + own_center))
    design[:k, 0] = 1.0
    design[:k, 1:k] = simplex(k)
    design[k, k if own_center else 0] = 1.0
    penalty = np.zeros(k + own_center)
    penalty[1:k] = mixture.covariance.mean_variance / mixture.center_variance
    return design, penalty


def log_sum(L: Array) -> Array:
    """ln of the sum of exp over the few entries of every row."""
    columns = L.T.copy()
    top = columns.max(axis=0)
    columns -= top
    return np.asarray(top + np.log(np.exp(columns, out=columns).sum(axis=0)))
