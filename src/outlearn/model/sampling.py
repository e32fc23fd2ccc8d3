"""Draw labelled data from the ensemble, in the paper's scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from outlearn.exceptions import ParameterError
from outlearn.model.checks import choice, count, generator, numbers
from outlearn.model.ensemble import Ensemble, checked_ensemble

__all__ = ["Dataset", "sample"]

_BLOCK_BYTES = 1 << 18  # rows are finished while they are still in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Labelled examples with the truth that a learner does not see.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        Inputs ξ.
    y : int array of shape (n_samples,)
        Labels S, -1 or +1.
    informative : bool array of shape (n_samples,)
        The hidden variables V.
    center : array of shape (n_features,)
        B, with |B|² = N; the clusters sit at ±B/√N.
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    informative: NDArray[np.bool_]
    center: NDArray[np.float64]

    @property
    def n_samples(self) -> int:
        """P, the number of examples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """N, the dimension."""
        return int(self.X.shape[1])

    def __repr__(self) -> str:
        return (
            f"Dataset(n_samples={self.n_samples}, n_features={self.n_features}, "
            f"informative={int(self.informative.sum())}, dtype={self.X.dtype})"
        )


def sample(
    ensemble: Ensemble,
    n_features: int,
    n_samples: int,
    rng: np.random.Generator | int | None = None,
    *,
    dtype: DTypeLike = np.float64,
    order: Literal["C", "F"] = "C",
    center: ArrayLike | None = None,
) -> Dataset:
    """Draw ``n_samples`` examples in ``n_features`` dimensions (Eqs. distexam, distv).

    The normals are nearly all of the cost. They come from an SFC64 stream, the fastest that numpy has,
    seeded from ``rng``, and fill X in place. B is uniform on the sphere |B|² = N unless ``center``
    gives it (it is then used as it is, without rescaling).

    >>> data = sample(Ensemble(eta=0.0, gamma=10.0), n_features=50, n_samples=400, rng=0)
    >>> data.X.shape, float(np.round(data.center @ data.center, 9))
    ((400, 50), 50.0)
    """
    checked_ensemble(ensemble)
    n_features = count("n_features", n_features)
    n_samples = count("n_samples", n_samples)
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise ParameterError("dtype", dtype, "a floating-point type") from None
    if dtype.kind != "f":
        raise ParameterError("dtype", dtype.name, "a floating-point type")
    choice("order", order, ("C", "F"))
    spread = 1.0 / np.sqrt(ensemble.gamma)
    if not spread < 1e-3 * np.finfo(dtype).max:
        raise ParameterError(
            "dtype", dtype.name, f"a type that holds numbers of the size 1/√γ = {spread:.1e}"
        )
    try:
        X = np.empty((n_samples, n_features), dtype=dtype, order=order)
    except (MemoryError, ValueError):  # numpy's word for sizes beyond addresses
        raise ParameterError("n_samples", n_samples, f"rows of {n_features} numbers fit in memory") from None
    seeds = generator("rng", rng).integers(0, 2**63, size=4)
    stream = np.random.Generator(np.random.SFC64([int(s) for s in seeds]))

    if center is None:
        B = stream.standard_normal(n_features)
        B *= np.sqrt(n_features) / np.linalg.norm(B)
    else:
        B = numbers("center", center, f"{n_features} finite numbers", np.isfinite).copy()
        if B.shape != (n_features,):
            raise ParameterError("center", center, f"{n_features} finite numbers")
    y = 2 * stream.integers(0, 2, size=n_samples, dtype=np.int64) - 1
    informative = stream.random(n_samples) < ensemble.informative_fraction
    _fill(X, y * informative, B / np.sqrt(n_features), spread, stream)
    return Dataset(X, y, informative, B)


def _fill(
    X: NDArray[Any],
    sign: NDArray[np.int64],
    shift: NDArray[np.float64],
    spread: float,
    stream: np.random.Generator,
) -> None:
    """Write ``sign * shift + spread * normals`` into X, block by block along its long memory axis."""
    by_column = not X.flags.c_contiguous
    target = X.T if by_column else X
    along, across = (shift, sign) if by_column else (sign, shift)
    native = X.dtype in (np.float32, np.float64)
    rows = max(1, _BLOCK_BYTES // max(1, target.shape[1] * X.itemsize))
    across = across.astype(X.dtype)
    for start in range(0, target.shape[0], rows):
        block = target[start : start + rows]
        if native:
            stream.standard_normal(out=block, dtype=X.dtype.type)
        else:
            block[...] = stream.standard_normal(block.shape)
        block *= X.dtype.type(spread)
        factor = along[start : start + rows].astype(X.dtype)
        moved = np.flatnonzero(factor)
        block[moved] += factor[moved, None] * across
