"""From labelled data to the model's own coordinates: folded by the labels, centred, whitened.

With z = y·W(x - m) the two classes become one cloud at V·c in unit noise: the midpoint m and the whitening W
are estimated here, from data of which a large part may be garbage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.utils.validation import check_array, column_or_1d

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.amp import AmpResult, amp
from outlearn.inference.covariance import oracle_shrinkage
from outlearn.inference.rows import Rows

__all__ = ["STRUCTURES", "Folded", "Structure", "fold", "pass_messages"]

Array = NDArray[np.float64]
Structure = Literal["auto", "spherical", "diag", "tied"]
STRUCTURES = ("auto", "spherical", "diag", "tied")

_LEAST = 4  # examples of a class below which nothing can be said
_TIED_FEATURES = 1000  # a full covariance of more features is not attempted
_ENOUGH = 2.0  # examples per feature from which a full covariance is not shrunk
_STEADY = 1e-9  # variance over mean square below which a feature is looked at twice
_FOLDS = 4
_TIED_ROUNDS = 5
_ROUNDS = 3  # of whitening by residuals and inferring again
_CLEARLY = 2.0  # standard errors by which a richer covariance must predict better
_WORTH = 3.0  # nats of evidence that wrong labels need to become part of the model
_LEARN = ("contamination", "label_noise", "noise_variance", "center_variance")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folded:
    """Data in the coordinates of the model, and how they got there.

    Attributes
    ----------
    rows : Rows
        Whitened, centred and folded examples.
    posterior : AmpResult
        What message passing infers of the centre and of every example, with all parameters learned.
    classes : array (2,)
        The labels that became -1 and +1.
    structure : str
        Covariance of the noise: "spherical", "diag" or "tied".
    selected : array (n_samples,)
        Rows of the data given that belong to the two classes.
    noise_variance : float
        Mean variance of a feature within a class, in the units given.
    noise_features : float
        (tr C)²/tr C² of the noise's covariance C: independent features of equal noise that would tell its
        mean variance as well.
    whitening_cost : float
        Factor on the squared cosine of the direction that estimating the covariance costs.
    columns : array (n_features,)
        Features of the data given that vary.
    warnings : tuple of str
    """

    rows: Rows
    posterior: AmpResult
    signs: Array
    classes: NDArray[Any]
    structure: str
    selected: NDArray[np.intp]
    noise_variance: float
    noise_features: float
    whitening_cost: float
    columns: NDArray[np.intp]
    warnings: tuple[str, ...] = ()


def fold(
    X: ArrayLike | Any,
    y: ArrayLike,
    *,
    structure: str = "auto",
    classes: tuple[Any, Any] | None = None,
) -> Folded:
    """Check the data, choose the structure of the noise, whiten, and infer.

    The structure is the simplest whose covariance, estimated on some residuals, predicts other residuals
    as well as the richer ones do. Residuals are what is left of an example without its share of the centre,
    so that neither garbage nor wrong labels make the noise look wider.
    """
    if structure not in STRUCTURES:
        raise ParameterError("structure", structure, f"one of {', '.join(STRUCTURES)}")
    notes: list[str] = []
    X, labels = _checked(X, y)
    pair, chosen = _two_classes(X, labels, classes, notes)
    X, labels = X[chosen], labels[chosen]
    signs = np.where(labels == pair[1], 1.0, -1.0)
    columns, offset = _varying_columns(X)
    if columns.size < X.shape[1]:
        notes.append(f"{X.shape[1] - columns.size} constant features were left out")
        X = X[:, columns]
    if offset is not None:
        X = X - offset[columns]
    if sparse.issparse(X) and structure == "tied":
        raise ParameterError("structure", structure, "'spherical' or 'diag' for sparse data")
    center = _midpoint(X, signs)
    scale = 1.0 / _within_spread(X, signs)
    if structure == "auto":
        # Coordinates without units come first: features may be in metres and in dollars.
        posterior = pass_messages(_rows(_scaled(X, scale), signs, center * scale))
        structure = _choose(X, signs, center, scale, posterior, notes)
    if structure == "spherical":
        rows = _rows(X, signs, center)
        posterior = pass_messages(rows)
        variance, alike, cost = posterior.noise_variance, float(columns.size), 1.0
    elif structure == "diag":
        rows, posterior, variances = _whiten_by_feature(X, signs, center, scale)
        variance, cost = variances.mean(), 1.0
        alike = float(variances.sum() ** 2 / (variances @ variances))
    else:
        rows, posterior, noise = _whiten_fully(X, signs, center, scale)
        variance, cost = np.trace(noise) / columns.size, max(1.0 - columns.size / len(signs), 0.05)
        alike = float(np.trace(noise) ** 2 / np.sum(noise**2))
    return Folded(
        rows=rows,
        posterior=posterior,
        signs=signs,
        classes=np.asarray(pair),
        structure=structure,
        selected=chosen,
        noise_variance=float(variance) * len(signs) / (len(signs) - 1.0),  # the midpoint took one example
        noise_features=alike,
        whitening_cost=cost,
        columns=columns,
        warnings=tuple(notes),
    )


def pass_messages(rows: Rows, **known: Any) -> AmpResult:
    """Infer by message passing; all that is not ``known`` is learned from the evidence.

    Wrong labels are part of the model only where the evidence asks for them: in weak data they are hard to
    tell from garbage, and a parameter that data do not speak of makes the others worse.
    """
    p, n = rows.shape
    noise = float(rows.square_norms().mean()) / n
    start: dict[str, Any] = {"contamination": 0.5, "noise_variance": noise, "tol": 1e-5}
    if "center_variance" in known:
        return amp(rows, **{**start, "learn": _unknown(known), **known})
    # Hebb's rule: the part of the mean row that noise does not explain, if half of the rows are garbage.
    mean = rows.weighted_sums(np.full((p, 1), 1.0 / p))[0]
    weak = max(4.0 * (float(mean @ mean) - noise * n / p) / n, 0.01 * noise / n)
    runs = []
    for variance in (weak, 10.0 * noise / n):
        begin = start | {"center_variance": variance}
        runs.append(amp(rows, **{**begin, "learn": _unknown(known), **known}))
        if "init" in known:
            break
    best = min(runs, key=lambda run: run.energy)
    if "label_noise" not in known:
        wrong = with_wrong_labels(rows, best, **{k: v for k, v in known.items() if k != "init"})
        if wrong.energy < best.energy - _WORTH:
            best = wrong
    return best


def with_wrong_labels(rows: Rows, found: AmpResult, **known: Any) -> AmpResult:
    """Infer on from ``found`` in a model that has wrong labels, too."""
    begin: dict[str, Any] = {
        "contamination": min(max(found.contamination, 1e-6), 1.0 - 1e-6),
        "label_noise": 0.1,
        "noise_variance": found.noise_variance,
        "center_variance": found.center_variance,
        "init": found.center if found.center.any() else "auto",
        "tol": 1e-5,
    }
    return amp(rows, **{**begin, "learn": [*_unknown(known), "label_noise"], **known})


def _unknown(known: dict[str, Any]) -> list[str]:
    return [name for name in _LEARN if name not in known and name != "label_noise"]


def _checked(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    try:
        X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2)
        labels = column_or_1d(y)
    except (ValueError, TypeError) as error:
        raise DataError(str(error).splitlines()[0].rstrip(":")) from None
    if len(labels) != X.shape[0]:
        raise DataError(f"X has {X.shape[0]} rows, y has {len(labels)} labels")
    missing = (
        labels != labels if labels.dtype.kind in "fc" else np.array([v is None or v != v for v in labels])
    )
    if missing.any():
        raise DataError(f"y has missing labels (first in row {int(np.flatnonzero(missing)[0])})")
    return X, labels


def _two_classes(
    X: Any, labels: NDArray[Any], classes: tuple[Any, Any] | None, notes: list[str]
) -> tuple[tuple[Any, Any], NDArray[np.intp]]:
    """The two classes to tell apart and the rows that have them."""
    try:
        found, counts = np.unique(labels, return_counts=True)
    except TypeError:
        raise DataError("y mixes labels of different types") from None
    if classes is not None:
        if len(classes) != 2 or classes[0] == classes[1]:
            raise ParameterError("classes", classes, "two different labels")
        for label in classes:
            if label not in found:
                raise ParameterError("classes", classes, f"two of the labels {_listed(found)}")
        pair = tuple(sorted(classes))
    elif len(found) == 1:
        raise DataError(f"y has one class only ({found[0]}): there is nothing to tell apart")
    elif len(found) == 2:
        pair = (found[0], found[1])
    else:
        if len(found) > 0.5 * len(labels):
            raise DataError(f"y has {len(found)} different labels in {len(labels)} rows: is it a class?")
        pair = _closest(X, labels, found[counts >= _LEAST])
        notes.append(
            f"y has {len(found)} classes; the two hardest to tell apart were diagnosed, {pair[0]} "
            f"and {pair[1]} "
            "(classes=(a, b) chooses others)"
        )
    for label in pair:
        count = int((labels == label).sum())
        if count < _LEAST:
            examples = "example" if count == 1 else "examples"
            raise DataError(f"class {label} has {count} {examples}: at least {_LEAST} are needed")
    return pair, np.flatnonzero((labels == pair[0]) | (labels == pair[1]))


def _closest(X: Any, labels: NDArray[Any], found: NDArray[Any]) -> tuple[Any, Any]:
    """The two classes whose means lie closest, in units of the spread within classes."""
    if len(found) < 2:
        raise DataError(f"no two classes have {_LEAST} examples or more")
    means = np.stack([np.asarray(X[labels == label].mean(axis=0)).ravel() for label in found])
    weight = np.array([(labels == label).sum() for label in found], dtype=np.float64)
    spread = np.sqrt(np.maximum(_column_square(X) - (weight / weight.sum()) @ means**2, 1e-300))
    means = means / np.where(spread > 1e-12 * (1.0 + np.abs(means).max(axis=0)), spread, np.inf)
    gaps = ((means[:, None] - means[None]) ** 2).sum(axis=2) - means.shape[1] * (
        1 / weight[:, None] + 1 / weight[None]
    )
    gaps[np.tril_indices(len(found))] = np.inf
    a, b = np.unravel_index(int(gaps.argmin()), gaps.shape)
    return found[a], found[b]


def _varying_columns(X: Any) -> tuple[NDArray[np.intp], Array | None]:
    """Find the columns that vary, and what to take off them first if some vary little about a large value."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    square = _column_square(X)
    if not np.isfinite(square).all():
        raise DataError("X has values too large to square")
    steady = square - mean**2 <= _STEADY * np.maximum(square, 1e-300)
    offset = None
    if steady.any() and not sparse.issparse(X):
        # the difference of two large numbers says nothing of a small variance
        suspects = np.flatnonzero(steady)
        spread = np.asarray(X[:, suspects], dtype=np.float64).std(axis=0)
        moving = suspects[spread > 1e-12 * np.abs(mean[suspects])]
        if moving.size:
            offset = np.zeros(mean.size)
            offset[moving] = mean[moving]
            steady[moving] = False
    if steady.all():
        raise DataError("every feature of X is constant")
    return np.flatnonzero(~steady), offset


def _column_square(X: Any) -> Array:
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            return np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        return np.einsum("ij,ij->j", X, X, dtype=np.float64) / X.shape[0]


def _midpoint(X: Any, signs: Array) -> Array:
    """Half way between the class means: garbage that is shared by both classes does not move it."""
    up, down = (signs > 0) / (signs > 0).sum(), (signs < 0) / (signs < 0).sum()
    return 0.5 * np.asarray((up + down) @ X, dtype=np.float64).ravel()


def _within_spread(X: Any, signs: Array) -> Array:
    variance = np.zeros(X.shape[1])
    for sign in (-1.0, 1.0):
        part = X[signs == sign]
        mean = np.asarray(part.mean(axis=0), dtype=np.float64).ravel()
        variance += part.shape[0] * np.maximum(_column_square(part) - mean**2, 0.0)
    variance /= X.shape[0]
    # a feature that is constant within classes would get an infinite say
    floor = 1e-6 * np.median(variance[variance > 0.0]) if (variance > 0.0).any() else 1.0
    return np.sqrt(np.maximum(variance, max(floor, 1e-300)))


def _scaled(X: Any, scale: Array) -> Any:
    return X @ sparse.diags_array(scale) if sparse.issparse(X) else np.asarray(X, dtype=np.float64) * scale


def _rows(X: Any, signs: Array, center: Array) -> Rows:
    return Rows.of(X.tocsr() if sparse.issparse(X) else X, signs=signs, center=center)


def _residual_moments(rows: Rows, posterior: AmpResult) -> tuple[Array, float]:
    """Residuals z - <V>c of the rows, and the weight of cc^T that V's uncertainty adds to their scatter."""
    u = posterior.posterior @ posterior.values
    second = posterior.posterior @ posterior.values**2
    sign = np.ones(rows.shape[0]) if rows.signs is None else rows.signs
    Z = np.asarray(rows.X, dtype=np.float64) - (0.0 if rows.center is None else rows.center)
    return Z - (sign * u)[:, None] * posterior.center, float((second - u**2).sum())


def _whiten_by_feature(X: Any, signs: Array, center: Array, scale: Array) -> tuple[Rows, AmpResult, Array]:
    """Scale every feature by its residual spread, a few times over; return the noise variances, too."""
    p = X.shape[0]
    for _ in range(_ROUNDS):
        rows = _rows(_scaled(X, scale), signs, center * scale)
        posterior = pass_messages(rows)
        if sparse.issparse(X):
            u = posterior.posterior @ posterior.values
            second = posterior.posterior @ posterior.values**2
            m, shift = posterior.center, center * scale
            columns = np.asarray(rows.X.sum(axis=0)).ravel()
            square = p * _column_square(rows.X) - 2 * shift * columns + p * shift**2
            cross = rows.weighted_sums(u[:, None])[0]
            variance = (square - 2 * cross * m + second.sum() * m**2) / p
        else:
            R, extra = _residual_moments(rows, posterior)
            variance = (np.einsum("ij,ij->j", R, R) + extra * posterior.center**2) / p
        variance = np.maximum(variance, 1e-6)
        # one round changes hardly anything once the features agree
        if np.abs(np.log(variance / variance.mean())).max() < 0.02 / np.sqrt(p):
            break
        scale = scale / np.sqrt(variance)
    rows = _rows(_scaled(X, scale), signs, center * scale)
    posterior = pass_messages(rows)
    return rows, posterior, posterior.noise_variance / scale**2


def _whiten_fully(X: Array, signs: Array, center: Array, scale: Array) -> tuple[Rows, AmpResult, Array]:
    """Whiten by the full covariance of the residuals; return the noise's covariance, too.

    The covariance within labels is that of the noise and, with garbage, p0 p1 cc^T = (p0/p1) hh^T, h being
    Hebb's mean. Iterations that begin with all of it end at "no garbage and little signal", which a
    covariance fitted to the same data makes likely; they begin with that part taken off for p0 = 1/2, and
    find less garbage or more.
    """
    p, n = X.shape
    Z = _scaled(X, scale) - center * scale
    mean = signs @ Z / p
    R = Z - signs[:, None] * mean
    covariance, _ = _shrunk(R.T @ R, p)
    length = float(mean @ linalg.solve(covariance, mean, assume_a="pos"))
    covariance -= min(1.0, 0.9 / max(length, 1e-300)) * np.outer(mean, mean)
    for _ in range(_TIED_ROUNDS):
        root = linalg.cholesky(covariance, lower=True)
        whitened = linalg.solve_triangular(root, Z.T, lower=True).T
        rows = _rows(np.ascontiguousarray(whitened), signs, np.zeros(n))
        posterior = pass_messages(rows)
        noise = covariance * posterior.noise_variance / np.outer(scale, scale)
        R, extra = _residual_moments(rows, posterior)
        inner = R.T @ R + extra * np.outer(posterior.center, posterior.center)
        covariance, _ = _shrunk(root @ inner @ root.T, p)
    return rows, posterior, noise


def _shrunk(scatter: Array, count: int) -> tuple[Array, float]:
    n = len(scatter)
    # Shrinking hides directions of little noise, which tell most: only where few examples leave no choice.
    share = oracle_shrinkage(scatter, float(count), n) if count < _ENOUGH * n else 0.0
    covariance = scatter / count
    target = np.trace(covariance) / n
    return (1.0 - share) * covariance + (share + 1e-9) * target * np.eye(n), share


def _choose(X: Any, signs: Array, center: Array, scale: Array, posterior: AmpResult, notes: list[str]) -> str:
    """Compare the structures by how well they predict residuals that they have not seen."""
    if sparse.issparse(X):
        return "diag"
    p, n = X.shape
    rng = np.random.default_rng(0)
    # V drawn, not its mean: an uncertain V would leave a part of the centre in the residual, as if the noise
    # were correlated, and large data would find that.
    drawn = (posterior.posterior.cumsum(axis=1) < rng.random((p, 1))).sum(axis=1)
    V = posterior.values[np.minimum(drawn, posterior.values.size - 1)]
    R = _scaled(X, scale) - center * scale - (signs * V)[:, None] * posterior.center
    candidates = ["spherical", "diag"]
    if n <= min(p / 2, _TIED_FEATURES) and n > 1:
        candidates.append("tied")
    elif n > 1:
        notes.append(
            f"{n} features and {p} examples: correlations between features cannot be estimated and "
            f"are ignored"
        )
    if n == 1:
        return "spherical"
    # The sphere is meant in the units given, not in those where all features are as wide.
    R /= scale
    scores = {name: np.empty(p) for name in candidates}
    folds = rng.permutation(p) % _FOLDS
    for k in range(_FOLDS):
        inside, held = R[folds != k], R[folds == k]
        variance = np.maximum(np.einsum("ij,ij->j", inside, inside) / len(inside), 1e-300)
        for name in candidates:
            if name == "tied":
                spread = np.sqrt(variance)
                scaled = inside / spread
                root = linalg.cholesky(_shrunk(scaled.T @ scaled, len(inside))[0], lower=True)
                distance = (linalg.solve_triangular(root, (held / spread).T, lower=True) ** 2).sum(axis=0)
                log_det = 2.0 * np.log(np.diag(root)).sum() + np.log(variance).sum()
            else:
                v = variance if name == "diag" else np.full(n, variance.mean())
                distance, log_det = (held**2 / v).sum(axis=1), np.log(v).sum()
            scores[name][folds == k] = -0.5 * (distance + log_det)
    best = candidates[0]
    for name in candidates[1:]:
        gain = scores[name] - scores[best]
        if gain.mean() > _CLEARLY * gain.std(ddof=1) / np.sqrt(p):
            best = name
    return best


def _listed(labels: NDArray[Any]) -> str:
    text = ", ".join(str(v) for v in labels[:10])
    return text + (", ..." if len(labels) > 10 else "")
