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

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from outlearn.exceptions import DataError
from outlearn.inference.covariance import (
    Covariance,
    Structure,
    cross,
    estimate,
    moment,
    oracle_shrinkage,
)
from outlearn.inference.results import FitStatus
from outlearn.inference.rows import Rows

__all__ = [
    "Beliefs",
    "Mixture",
    "MixtureData",
    "MixtureFit",
    "RunningMoments",
    "Statistics",
    "fit_mixture",
    "simplex",
]

Array = NDArray[np.float64]

_LABEL_PRIOR = 2.0  # examples' worth of belief that the classes are as frequent as their labels
_STATE_PRIOR = 1.0  # examples' worth of belief in every kind of state: keeps fractions off 0 and 1
_SPHERE_PULL = 1e-2  # examples' worth of prior: no more than keeps an empty cluster finite
_DIAG_PULL = 2.0
_GARBAGE_PULL = 5.0
_FADING = 0.7  # a batch that is a share s of all examples so far moves the averages by s**0.7
_FLOOR = 1e-9  # of the mean variance
_SMALL = 1 << 17  # cells: so small a sparse matrix is faster written out (1 MB)


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


def weighted_sum(X: Any, weights: Array) -> Array:
    """Sum of rows in double precision, without a wide copy of single-precision data."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return np.asarray(weights @ X, dtype=np.float64).ravel()
    step = max(1, _SMALL // X.shape[1])
    parts = [weights[k : k + step] @ X[k : k + step] for k in range(0, len(X), step)]
    return np.asarray(np.sum(parts, axis=0))


class MixtureData:
    """Labelled examples in the working coordinates of one covariance structure, with fixed weights.

    Coordinates are centred at the weighted mean. "tied" works on a standardised copy. With P < N and a
    structure that knows no axes (spherical, tied), examples are rotated into the P directions that
    they span: nothing is lost, since every centre is a sum of examples.
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
        self.basis: Array | None = None
        dense = not sparse.issparse(X)
        if structure == "tied" and not dense:
            raise DataError("covariance 'tied' needs dense data, X is sparse")
        if not dense and p * n <= _SMALL:
            X, dense = X.toarray(), True
        self.X = X
        rotate = like is None and p < n
        if structure == "tied" or (structure == "spherical" and dense and rotate and 2 * p < n):
            Z = np.asarray(X, dtype=np.float64) - self.origin
            if structure == "tied":
                spread = like.scale if known else np.sqrt((self.weights @ (Z * Z)) / total)
                self.scale = np.where(spread > 0.0, spread, 1.0)
                Z /= self.scale
            if rotate:
                values, vectors = linalg.eigh(Z @ Z.T, check_finite=False)
                keep = values > max(values[-1], 0.0) * 1e-10
                self.basis = (vectors[:, keep].T @ Z) / np.sqrt(values[keep])[:, None]
                Z = vectors[:, keep] * np.sqrt(values[keep])
            self.rows = Rows.of(np.ascontiguousarray(Z))
        else:
            self.rows = Rows.of(X, center=self.origin, n_threads=n_threads)
        self.use(self.weights)

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
        scaled = vectors / self.scale
        return scaled if self.basis is None else scaled @ self.basis.T

    def original_center(self, point: Array) -> Array:
        """Return a point of the working coordinates in the units of the data."""
        return self.origin + self.scale * (point if self.basis is None else point @ self.basis)

    def held_out(self, weights: Array) -> MixtureData:
        """Return the same examples in the same coordinates under other weights."""
        other = object.__new__(MixtureData)
        other.__dict__.update(self.__dict__)
        return other.use(weights)

    def block(self, rows: slice) -> Array:
        """Working coordinates of a block of rows."""
        Z = self.rows.X[rows]
        Z = Z.toarray() if sparse.issparse(Z) else Z
        return Z if self.rows.center is None else Z - self.rows.center

    def _moments(self, weights: Array) -> Any:
        norms = self.rows.square_norms()
        if self.structure == "spherical":
            return float(weights @ norms)
        return sum(moment(self.structure, self.block(r), weights[r]) for r in self.rows._blocks())

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
        norms = self.rows.square_norms()
        parts: list[tuple[float, Array, Any]] = []
        own = not mixture.shared

        def respond(rows: slice, H: Array) -> Array:
            H += table[self.labels[rows]]
            block = self.block(rows) if own and self.structure != "spherical" else H[:, :0]
            if own:
                H[:, -1] += mixture.contrast(block, norms[rows])
            top = H.max(axis=1)
            np.exp(np.subtract(H, top[:, None], out=H), out=H)
            if hard:
                H[...] = H == 1.0
                H /= H.sum(axis=1, keepdims=True)
            else:
                sums = H.sum(axis=1)
                H /= sums[:, None]
                top += np.log(sums)
            if out is not None:
                out[rows] = H
            weights = self.weights[rows]
            likelihood = float(weights @ top)
            counts = self.label_weights[rows].T @ H
            H *= weights[:, None]
            parts.append(
                (likelihood, counts, moment(self.structure, block, H[:, -1], norms[rows]) if own else 0.0)
            )
            return H

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
        X = self.rows.X
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
        norms = self.rows.square_norms()
        if not mixture.shared:
            for rows in self.rows._blocks():
                H[rows, -1] += mixture.contrast(self.block(rows), norms[rows])
        if leave_out:
            L = H + mixture.log_states()[self.labels]
            W = np.exp(L - np.logaddexp.reduce(L, axis=1)[:, None])
            n_states = (W * self.weights[:, None]).sum(axis=0)
            design, penalty = design_of(mixture, own_center=mixture.garbage_center is not mixture.midpoint)
            normal = (design.T * n_states) @ design + np.diag(penalty + 1e-12 * self.count)
            pull = design @ np.linalg.solve(normal, design.T)
            distances = np.concatenate(
                [mixture.covariance.square_distances(self.block(r), norms[r]) for r in self.rows._blocks()]
            )
            H -= (W @ pull) * (distances * np.minimum(self.weights, 1.0))[:, None]
        return H

    def inlier_proba(self, mixture: Mixture, leave_out: bool = False) -> Array:
        """(P,): probability that each example is informative and rightly labelled."""
        H = self.log_densities(mixture, leave_out) + mixture.log_states()[self.labels]
        own = H[np.arange(len(self.labels)), self.labels]
        return np.asarray(np.exp(own - np.logaddexp.reduce(H, axis=1)))

    def log_evidence(self, mixture: Mixture) -> Array:
        """(P,): ln p(x, y) of every example with its own pull on the centres taken out."""
        H = self.log_densities(mixture, leave_out=True) + mixture.log_states()[self.labels]
        return np.asarray(np.logaddexp.reduce(H, axis=1))

    def log_label_given_input(self, mixture: Mixture, leave_out: bool = False) -> Array:
        """(P,): log p(y | x) of the observed labels under the contaminated model."""
        H = self.log_densities(mixture, leave_out)
        table = mixture.log_states()
        joint = np.stack([np.logaddexp.reduce(H + row, axis=1) for row in table], axis=1)
        own = joint[np.arange(len(self.labels)), self.labels]
        return np.asarray(own - np.logaddexp.reduce(joint, axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """Expected sufficient statistics: all that the M step needs of the data."""

    sums: Array  # (K+1, n): sum of examples by state
    counts: Array  # (K, K+1): weight by label and state
    garbage: Any  # second moment of the garbage (only where it has its own covariance)
    log_likelihood: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixtureFit:
    """A fitted mixture and how it came about."""

    mixture: Mixture
    energy: float
    n_iter: int
    status: FitStatus
    residual: float
    start: str
    spread: float = 0.0
    energies: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shrinkage:
    """Hyperparameters of the covariances: held fixed while EM climbs, so that it has one objective."""

    pull: float
    target: Any


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


def maximise(
    data: MixtureData | RunningMoments,
    stats: Statistics,
    beliefs: Beliefs,
    shrinkage: _Shrinkage,
    last: Mixture,
) -> Mixture:
    """M step: the parameters of highest expected complete log-posterior (covariances after centres).

    Midpoint, centres and garbage centre solve one small linear system, the same for all features unless
    garbage has a spread of its own about the shared midpoint.
    """
    k, corners = data.n_classes, simplex(data.n_classes)
    n_states = stats.counts.sum(axis=0)
    own_center = beliefs.garbage == "free"
    design, penalty = design_of(last, own_center)
    relative = np.ones((1, k + 1))  # precision of every state against the classes', by feature
    if beliefs.garbage == "spread":
        ratio = np.atleast_1d(last.covariance.values / last.garbage_covariance.values)
        relative = np.ones((len(ratio), k + 1))
        relative[:, k] = ratio
    weights = relative * n_states
    normal = np.einsum("zi,fz,zj->fij", design, weights, design) + np.diag(penalty + 1e-12 * data.count)
    if len(relative) == 1:
        B = np.linalg.solve(normal[0], design.T @ (relative[0][:, None] * stats.sums))
    else:
        right = np.einsum("zi,fz,zf->fi", design, relative, stats.sums)
        B = np.linalg.solve(normal, right[:, :, None])[:, :, 0].T
    midpoint, centers = B[0], B[1:k]
    garbage_center = B[k] if own_center else midpoint
    means = np.vstack([midpoint + corners @ centers, garbage_center])

    covariance, garbage_covariance = _covariances(data, stats, beliefs, shrinkage, means, n_states)
    if beliefs.garbage == "shared":
        garbage_covariance = covariance
    return Mixture(
        midpoint=midpoint,
        centers=centers,
        garbage_center=garbage_center,
        covariance=covariance,
        garbage_covariance=garbage_covariance,
        states=_states(stats.counts, beliefs),
        class_prior=_smoothed(stats.counts[:, :k].sum(axis=0), data.frequencies),
        garbage_labels=data.frequencies,
        center_variance=last.center_variance,
    )


def _covariances(
    data: MixtureData | RunningMoments,
    stats: Statistics,
    beliefs: Beliefs,
    shrinkage: _Shrinkage,
    means: Array,
    n_states: Array,
) -> tuple[Covariance, Covariance]:
    form = data.structure
    inside = stats.sums if beliefs.garbage == "shared" else stats.sums[:-1]
    used = means[: len(inside)]
    count = n_states[: len(inside)]
    total = data.total if beliefs.garbage == "shared" else data.total - stats.garbage
    scatter = total - 2.0 * cross(form, inside, used) + cross(form, used * count[:, None], used)
    common = {"n_total": data.n_total, "target": shrinkage.target, "floor": _FLOOR * data.variance}
    covariance = estimate(form, scatter, float(count.sum()), pull=shrinkage.pull, **common)
    if beliefs.noise_variance is not None:
        covariance = covariance.scaled(beliefs.noise_variance / covariance.mean_variance)
    if beliefs.garbage == "shared":
        return covariance, covariance
    own = means[-1:]
    scatter = stats.garbage - 2.0 * cross(form, stats.sums[-1:], own) + cross(form, own * n_states[-1], own)
    # a handful of outliers says little of their spread: they borrow the pull of all examples
    pull = max(shrinkage.pull, _GARBAGE_PULL)
    return covariance, estimate(form, scatter, float(n_states[-1]), pull=pull, **common)


def _states(counts: Array, beliefs: Beliefs) -> Array:
    """Fractions of right label, wrong label, garbage: most probable under a weak Beta prior."""
    right = float(np.trace(counts[:, :-1]))
    wrong = float(counts[:, :-1].sum()) - right
    garbage = float(counts[:, -1].sum())
    epsilon, lam = beliefs.contamination, beliefs.label_noise
    a = _STATE_PRIOR
    if epsilon is None and lam is None:
        all_ = right + wrong + garbage + 3 * a
        return np.array([right + a, wrong + a, garbage + a]) / all_
    if epsilon is None:
        epsilon = (1.0 - lam) * (garbage + a) / (right + wrong + garbage + 2 * a)  # type: ignore[operator]
    if lam is None:
        lam = (1.0 - epsilon) * (wrong + a) / (right + wrong + 2 * a)
    return np.array([max(1.0 - epsilon - lam, 0.0), lam, epsilon])


def _smoothed(counts: Array, frequencies: Array) -> Array:
    weights = counts + _LABEL_PRIOR * frequencies
    return np.asarray(weights / weights.sum())


def center_uncertainty(data: MixtureData, stats: Statistics, mixture: Mixture) -> float:
    """Posterior variance of a coordinate of a centre, in units of the noise variance."""
    informative = stats.counts[:, :-1].sum()
    return float(
        1.0
        / (informative / (data.n_classes - 1) + mixture.covariance.mean_variance / mixture.center_variance)
    )


def moment_center_variance(data: MixtureData | RunningMoments, mixture: Mixture) -> float:
    """Variance of a centre's coordinate by moments: what the class means' contrasts have beyond noise.

    E|Hebb|² = (right - wrong/(K-1))² |C|² + noise, whoever is an outlier. Learning τ² from the centre that EM
    found would be circular: where P is about N a collapsing prior and a collapsing centre confirm each other.
    """
    k, n = data.n_classes, data.n_total
    noise = mixture.covariance.mean_variance
    hebb = data.hebb
    square = noise * float(np.vdot(mixture.covariance.solve(hebb), hebb))
    spread = (
        noise * ((k - 1.0) / k) ** 2 * float((1.0 / np.maximum(data.count * data.frequencies, 1.0)).sum())
    )
    signal = max(square - n * spread, spread * np.sqrt(2.0 * n / (k - 1.0)))
    right, wrong = mixture.states[0], mixture.states[1] / (k - 1.0)
    return signal / (max(abs(right - wrong), 1e-3) ** 2 * n * (k - 1.0))


def prior_energy(data: MixtureData | RunningMoments, mixture: Mixture) -> float:
    """Minus the log prior of centres and fractions."""
    ridge = mixture.covariance.mean_variance / mixture.center_variance
    value = 0.5 * ridge * float(np.vdot(mixture.covariance.solve(mixture.centers), mixture.centers))
    size = (data.n_classes - 1) * data.n_total
    value += 0.5 * size * np.log(2 * np.pi * mixture.center_variance)
    value -= _STATE_PRIOR * float(np.log(mixture.states[mixture.states > 0.0]).sum())
    frequencies = data.frequencies * np.log(np.maximum(mixture.class_prior, 1e-300))
    return value - _LABEL_PRIOR * float(frequencies.sum())


def covariance_energy(mixture: Mixture, shrinkage: _Shrinkage) -> float:
    """Minus the log prior of the covariances, which is what shrinks them.

    Needed to climb; left out of the energy that is reported, since its strength is set from the data
    and differs from start to start.
    """
    clouds = [(mixture.covariance, shrinkage.pull)]
    if not mixture.shared:
        clouds.append((mixture.garbage_covariance, max(shrinkage.pull, _GARBAGE_PULL)))
    value = 0.0
    for cloud, pull in clouds:
        if cloud.structure == "spherical":
            inverse = cloud.n_total * float(shrinkage.target) / float(cloud.values)
        elif cloud.structure == "diag":
            inverse = float((shrinkage.target / cloud.values).sum())
        else:
            inverse = float(shrinkage.target) * float(np.trace(cloud.solve(np.eye(cloud.n_working))))
            rest = cloud.n_total - cloud.n_working
            inverse += rest * float(shrinkage.target) / cloud.outside if rest else 0.0
        value += 0.5 * pull * (cloud.log_det + inverse)
    return value


def _shrinkage_for(data: MixtureData | RunningMoments, count: float, scatter: Any) -> _Shrinkage:
    if data.structure == "spherical":
        return _Shrinkage(pull=_SPHERE_PULL, target=data.variance)
    if data.structure == "diag":
        return _Shrinkage(pull=_DIAG_PULL, target=np.maximum(data.total / data.count, _FLOOR * data.variance))
    intensity = min(oracle_shrinkage(scatter, count, data.n_total), 0.999)
    target = float(np.trace(scatter)) / count / data.n_total
    return _Shrinkage(pull=count * intensity / (1.0 - intensity), target=target)


# -- starts ----------------------------------------------------------------------------------------------


def mixture_at(data: MixtureData, beliefs: Beliefs, centers: Array) -> Mixture:
    """Neutral mixture around given centres: half of what is to be learned is garbage."""
    epsilon = beliefs.contamination
    lam = beliefs.label_noise
    if lam is None:
        lam = 0.25 * (1.0 - (epsilon or 0.0)) if epsilon is not None and epsilon < 0.01 else 0.1
    if epsilon is None:
        epsilon = 0.5 * (1.0 - lam)
    scale = beliefs.noise_variance or data.variance
    if data.structure == "spherical":
        values: Any = scale
        outside = 0.0
    elif data.structure == "diag":
        values = np.maximum(data.total / data.count, _FLOOR * data.variance)
        outside = 0.0
    else:
        n = len(data.total)
        share = oracle_shrinkage(data.total, data.count, data.n_total)
        values = (1.0 - share) * data.total / data.count + (share + _FLOOR) * data.variance * np.eye(n)
        outside = (share + _FLOOR) * data.variance
    covariance = Covariance(
        structure=data.structure, values=values, n_total=data.n_total, outside=max(outside, 1e-12)
    )
    origin = np.zeros(centers.shape[1])
    tau2 = beliefs.center_variance
    if tau2 is None:
        tau2 = data.variance
    mixture = Mixture(
        midpoint=origin,
        centers=centers,
        garbage_center=origin,
        covariance=covariance,
        garbage_covariance=covariance if beliefs.garbage == "shared" else covariance.scaled(1.0),
        states=np.array([1.0 - epsilon - lam, lam, epsilon]),
        class_prior=data.frequencies,
        garbage_labels=data.frequencies,
        center_variance=tau2,
    )
    if beliefs.center_variance is None:
        mixture = replace(mixture, center_variance=moment_center_variance(data, mixture))
    return mixture


# -- the climb -------------------------------------------------------------------------------------------


def fit_mixture(
    data: MixtureData,
    beliefs: Beliefs,
    start: Mixture | Array,
    *,
    max_iter: int = 1000,
    tol: float = 1e-5,
    hard: bool = False,
    name: str = "given",
    accelerate: bool = True,
    record: bool = False,
) -> MixtureFit:
    """Climb from one start: a mixture, or probabilities of the states (P, K+1) of every example.

    EM with guarded extrapolation (SQUAREM): an extrapolated point is kept only where the energy does not
    rise. Learned hyperparameters (prior of the centres, shrinkage) follow between cycles. The residual is
    that of a plain EM step, relative to the distance of the class means.
    """
    climb = _Climb(data, beliefs, hard)
    if isinstance(start, Mixture):
        mixture = start
    else:
        neutral = mixture_at(data, beliefs, data.hebb)
        stats = data.statistics_of(start)
        climb.follow(stats, neutral)
        mixture = maximise(data, stats, beliefs, climb.shrinkage, neutral)
    if climb.shrinkage is None:
        climb.follow(data.statistics(mixture), mixture)
    energies: list[float] = []
    n_iter, residual, status = 0, np.inf, FitStatus.MAX_ITER
    energy = np.inf
    while n_iter < max_iter:
        first, stats0, energy = climb.step(mixture)
        n_iter += 1
        energies.append(energy)
        residual = _distance(first, mixture)
        if residual < tol:
            status = FitStatus.CONVERGED
            mixture = first
            break
        if not accelerate or n_iter >= max_iter:
            mixture = first
            climb.follow(stats0, mixture)
            mixture = climb.hyper(stats0, mixture)
            continue
        second, stats1, energy1 = climb.step(first)
        n_iter += 1
        energies.append(energy1)
        best = climb.extrapolate(mixture, first, second)
        if best is not None:
            third, stats2, energy2 = climb.step(best)
            n_iter += 1
            if np.isfinite(energy2) and energy2 <= energy1:
                energies.append(energy2)
                second, stats1 = third, stats2
        climb.follow(stats1, second)
        mixture = climb.hyper(stats1, second)
    final = data.statistics(mixture, spread=climb.spread, hard=hard)
    energy = prior_energy(data, mixture) - final.log_likelihood
    if data.n_classes == 2 and mixture.states[1] > mixture.states[0] and beliefs.label_noise is None:
        mixture = replace(
            mixture,
            centers=-mixture.centers,
            states=mixture.states[[1, 0, 2]],
            class_prior=mixture.class_prior[::-1].copy(),
        )
    informative = float(final.counts[:, :-1].sum())
    if informative < min(2.0 * data.n_classes, 0.5 * data.count):
        status = FitStatus.ALL_REJECTED
    return MixtureFit(
        mixture=mixture,
        energy=energy + 0.5 * climb.log_precision(final, mixture),
        n_iter=n_iter,
        status=status,
        residual=float(residual),
        start=name,
        spread=climb.spread,
        energies=tuple(energies) if record else (),
    )


class _Climb:
    """One climb's objective: hyperparameters fixed within a cycle, followed between cycles."""

    def __init__(self, data: MixtureData, beliefs: Beliefs, hard: bool) -> None:
        self.data, self.beliefs, self.hard = data, beliefs, hard
        self.shrinkage: Any = None
        self.spread = 0.0
        self.refreshes = 0

    def step(self, mixture: Mixture) -> tuple[Mixture, Statistics, float]:
        stats = self.data.statistics(mixture, spread=self.spread, hard=self.hard)
        after = maximise(self.data, stats, self.beliefs, self.shrinkage, mixture)
        return after, stats, self.energy(mixture, stats)

    def energy(self, mixture: Mixture, stats: Statistics) -> float:
        prior = prior_energy(self.data, mixture) + covariance_energy(mixture, self.shrinkage)
        return prior - stats.log_likelihood

    def follow(self, stats: Statistics, mixture: Mixture) -> None:
        """Follow the hyperparameters of the covariance for the first cycles, then hold them."""
        if self.hard:
            size = 0.5 * self.data.n_total * (self.data.n_classes - 1)
            self.spread = size * center_uncertainty(self.data, stats, mixture)
        if self.refreshes >= 8 and self.shrinkage is not None:
            return
        if self.shrinkage is not None and self.data.structure != "tied":
            return
        self.refreshes += 1
        data, n_states = self.data, stats.counts.sum(axis=0)
        own = self.beliefs.garbage != "shared"
        inside = stats.sums[:-1] if own else stats.sums
        means = np.vstack([mixture.means, mixture.garbage_center])[: len(inside)]
        count = n_states[: len(inside)]
        total = data.total - stats.garbage if own else data.total
        scatter = total - 2.0 * cross(data.structure, inside, means)
        scatter = scatter + cross(data.structure, means * count[:, None], means)
        self.shrinkage = _shrinkage_for(data, max(float(count.sum()), 1.0), scatter)

    def hyper(self, stats: Statistics, mixture: Mixture) -> Mixture:
        if self.beliefs.center_variance is not None:
            return mixture
        return replace(mixture, center_variance=moment_center_variance(self.data, mixture))

    def log_precision(self, stats: Statistics, mixture: Mixture) -> float:
        """Log determinant of the centres' posterior precision: makes learned priors comparable."""
        if self.beliefs.center_variance is not None:
            return 0.0
        size = self.data.n_total * (self.data.n_classes - 1)
        variance = center_uncertainty(self.data, stats, mixture) * mixture.covariance.mean_variance
        return -size * np.log(2 * np.pi * variance)

    def extrapolate(self, a: Mixture, b: Mixture, c: Mixture) -> Mixture | None:
        """Squared extrapolation through three EM iterates, in coordinates without borders."""
        va, vb, vc = (_pack(m) for m in (a, b, c))
        r = vb - va
        v = (vc - vb) - r
        norm = np.linalg.norm(v)
        if norm == 0.0:
            return None
        length = min(max(float(np.linalg.norm(r) / norm), 1.0), 32.0)
        if length <= 1.0:
            return None
        point = va + 2.0 * length * r + length**2 * v
        if not np.isfinite(point).all():
            return None
        try:
            return _unpack(point, c, self.beliefs)
        except np.linalg.LinAlgError:  # a covariance left the cone of positive ones
            return None


def _distance(a: Mixture, b: Mixture) -> float:
    """How far two mixtures are: of the centres relative to their length, and of the fractions."""
    scale = np.linalg.norm(a.centers) + 1e-300
    moved = float(np.linalg.norm(a.centers - b.centers) / scale)
    return max(moved, float(np.abs(a.states - b.states).max()))


def _pack(m: Mixture) -> Array:
    unit = np.sqrt(m.covariance.mean_variance)
    parts = [m.midpoint / unit, m.centers.ravel() / unit, m.garbage_center / unit]
    for cloud in (m.covariance, m.garbage_covariance):
        values = cloud.values if cloud.structure == "tied" else np.log(cloud.values)
        parts.append(np.ravel(values))
    for part in (m.states, m.class_prior):
        parts.append(np.log(np.maximum(part, 1e-300)))
    return np.concatenate([np.ravel(part) for part in parts])


def _unpack(vector: Array, like: Mixture, beliefs: Beliefs) -> Mixture:
    unit = np.sqrt(like.covariance.mean_variance)
    at = 0

    def take(shape: tuple[int, ...]) -> Array:
        nonlocal at
        size = int(np.prod(shape))
        at += size
        return vector[at - size : at].reshape(shape)

    midpoint = take(like.midpoint.shape) * unit
    centers = take(like.centers.shape) * unit
    garbage_center = take(like.garbage_center.shape) * unit
    if like.garbage_center is like.midpoint:
        garbage_center = midpoint
    clouds = []
    for cloud in (like.covariance, like.garbage_covariance):
        values = take(cloud.values.shape)
        values = values if cloud.structure == "tied" else np.exp(np.clip(values, -600, 600))
        clouds.append(
            Covariance(structure=cloud.structure, values=values, n_total=cloud.n_total, outside=cloud.outside)
        )
    fractions = []
    for part in (like.states, like.class_prior):
        value = np.exp(np.minimum(take(part.shape), 0.0))
        value[np.asarray(part) == 0.0] = 0.0
        fractions.append(value / value.sum())
    states = like.states
    if beliefs.contamination is None or beliefs.label_noise is None:
        known = (beliefs.contamination is not None, beliefs.label_noise not in (None,))
        states = fractions[0].copy()
        if known[0]:
            states[2] = like.states[2]
            states[:2] *= (1.0 - states[2]) / states[:2].sum()
        elif known[1]:
            states[1] = like.states[1]
            rest = states[0] + states[2]
            states[[0, 2]] *= (1.0 - states[1]) / rest
    return Mixture(
        midpoint=midpoint,
        centers=centers,
        garbage_center=garbage_center,
        covariance=clouds[0],
        garbage_covariance=clouds[0] if like.shared else clouds[1],
        states=states,
        class_prior=fractions[1],
        garbage_labels=like.garbage_labels,
        center_variance=like.center_variance,
    )


class RunningMoments:
    """Sufficient statistics of a stream: stochastic EM with a memory that fades slowly.

    Speaks the M step's language (count, frequencies, second moment), in the coordinates of the first batch.
    """

    def __init__(self) -> None:
        self.origin: Any = None
        self.scale: Any = None
        self.mixture: Mixture | None = None
        self.seen = 0.0
        self.count = 0.0
        self.total: Any = None
        self.stats: Any = None
        self._averages: list[Any] = []

    def learn(self, data: MixtureData, beliefs: Beliefs, hard: bool) -> MixtureFit:
        """Take in one batch: its expected statistics under the present mixture, then one M step."""
        if self.mixture is None:
            start = mixture_at(data, beliefs, data.hebb)
            fit = fit_mixture(data, beliefs, start, max_iter=200, tol=1e-4, hard=hard, name="hebb")
            self.origin, self.scale, self.mixture = data.origin, data.scale, fit.mixture
            self.n_classes, self.n_total, self.structure = data.n_classes, data.n_total, data.structure
            self._blend(data, data.statistics(fit.mixture, hard=hard), 1.0)
            self.seen = data.count
            return replace(fit, status=FitStatus.CONVERGED)
        self.seen += data.count
        stats = data.statistics(self.mixture, hard=hard)
        self._blend(data, stats, min(1.0, (data.count / self.seen) ** _FADING))
        shrinkage = _shrinkage_for(self, self.count, self.total)
        mixture = maximise(self, self.stats, beliefs, shrinkage, self.mixture)
        if beliefs.center_variance is None:
            mixture = replace(mixture, center_variance=moment_center_variance(self, mixture))
        moved = _distance(mixture, self.mixture)
        self.mixture = mixture
        return MixtureFit(
            mixture=mixture,
            energy=prior_energy(self, mixture) - stats.log_likelihood,
            n_iter=1,
            status=FitStatus.CONVERGED,
            residual=moved,
            start="stream",
        )

    def _blend(self, data: MixtureData, stats: Statistics, step: float) -> None:
        """Averages per example, then scaled to the number of examples seen."""
        new = [
            stats.sums,
            stats.counts,
            stats.garbage,
            data.total,
            data.label_sums,
            data.label_weights.sum(axis=0),
        ]
        new = [value / data.count for value in new]
        old = new if step >= 1.0 else self._averages
        self._averages = [(1.0 - step) * a + step * b for a, b in zip(old, new, strict=True)]
        n = max(self.seen, data.count)
        sums, counts, garbage, total, label_sums, label_counts = (n * value for value in self._averages)
        self.stats = Statistics(
            sums=sums, counts=counts, garbage=garbage, log_likelihood=stats.log_likelihood
        )
        self.count, self.total = n, total
        self.frequencies = label_counts / n
        self.hebb = contrast_centers(label_sums, label_counts)
        self.variance = moment_mean(self.structure, total, self.n_total) / n
