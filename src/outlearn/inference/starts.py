"""Where to begin: named starting points, kept in a registry that other modules may add to."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from outlearn.exceptions import ParameterError
from outlearn.inference.rows import Reads
from outlearn.inference.selection import Beliefs, Selection

__all__ = ["STARTS", "Start", "given_centers", "hebb_center", "named_start", "planned"]

Array = NDArray[np.float64]
Start = Callable[[Selection, Beliefs, np.random.Generator], Array]
STARTS: dict[str, Start] = {}
_LARGEST = 1e70


def named_start(name: str) -> Callable[[Start], Start]:
    """Register a function (problem, beliefs, rng) -> (N,) centre as the start called ``name``."""

    def register(start: Start) -> Start:
        STARTS[name] = start
        return start

    return register


def planned(init: str | ArrayLike, n_init: int, hard: bool, n_features: int) -> list[tuple[str, Start]]:
    """Names and makers of all starting points that ``init`` asks for."""
    if not isinstance(init, str):
        return [("given", _constant(center)) for center in given_centers(init, n_features)]
    if init == "auto":
        names = ["hebb", "spectral", *(["soft"] if hard else []), *["random"] * n_init]
    elif init == "random":
        names = ["random"] * max(1, n_init)
    else:
        names = [init]
    for name in names:
        if name not in STARTS:
            raise ParameterError("init", name, f"'auto', {', '.join(map(repr, sorted(STARTS)))} or an array")
    return [(name, STARTS[name]) for name in names]


def _constant(center: Array) -> Start:
    return lambda problem, beliefs, rng: center


def hebb_center(reads: Reads, beliefs: Beliefs) -> Array:
    """Every example with weight one (Eq. Hebb): the prior-damped mean of the folded rows."""
    p, _ = reads.shape
    total = float(p if reads.sample_weight is None else reads.sample_weight.sum())
    sums = reads.weighted_sums(np.ones((p, 1)))[0]
    return sums / (total + beliefs.noise_variance / beliefs.center_variance)


@named_start("hebb")
def _hebb(problem: Selection, beliefs: Beliefs, rng: np.random.Generator) -> Array:
    return hebb_center(problem.reads, beliefs)


@named_start("random")
def _random(problem: Selection, beliefs: Beliefs, rng: np.random.Generator) -> Array:
    """Draw from the prior."""
    return math.sqrt(beliefs.center_variance) * rng.standard_normal(problem.reads.shape[1])


@named_start("spectral")
def _spectral(problem: Selection, beliefs: Beliefs, rng: np.random.Generator) -> Array:
    """Leading direction of the folded rows, at the prior's length; of its two signs the lower energy."""
    reads = problem.reads
    n = reads.shape[1]
    guess = hebb_center(reads, beliefs)
    if n > 2 and guess.any():

        def square(v: Array) -> Array:
            return reads.sweep(np.ravel(v)[None, :], lambda rows, H: H)[0]

        operator = LinearOperator((n, n), matvec=square, dtype=np.float64)
        # Few Lanczos vectors and a loose tolerance: it is a starting point, and every vector is a read.
        _, vectors = eigsh(operator, k=1, v0=guess, ncv=min(n, 10), tol=1e-2)
        direction = vectors[:, 0]
    else:
        direction = guess if guess.any() else rng.standard_normal(n)
    center = math.sqrt(problem.n_features * beliefs.center_variance) * direction / np.linalg.norm(direction)
    plus, minus = problem.read([problem.state(sign * center, beliefs) for sign in (1.0, -1.0)])
    return center if plus.energy <= minus.energy else -center


@named_start("soft")
def _soft(problem: Selection, beliefs: Beliefs, rng: np.random.Generator) -> Array:
    """The centre that the soft selection finds from the Hebb and spectral starts."""
    from outlearn.inference.acceleration import Climb, descend, squarem

    soft = Selection(problem.reads, hard=False, n_features=problem.n_features)
    climbs = [
        Climb(name, soft.state(STARTS[name](soft, beliefs, rng), beliefs), tol=1e-4, max_iter=200)
        for name in ("hebb", "spectral")
    ]
    descend(soft, climbs, squarem)
    ends = [climb.last for climb in climbs if climb.last is not None]
    return min(ends, key=lambda step: step.energy).next.center


@named_start("amp")
def _amp(problem: Selection, beliefs: Beliefs, rng: np.random.Generator) -> Array:
    """The posterior mean, by message passing: inside the informative basin wherever that can be reached."""
    from outlearn.inference.amp import amp

    found = amp(
        problem.reads,
        contamination=beliefs.contamination,
        noise_variance=beliefs.noise_variance,
        center_variance=beliefs.center_variance,
        learn=problem.learn,
        tol=1e-4,
        max_iter=200,
        rng=rng,
    )
    return found.center


def given_centers(init: ArrayLike, n: int) -> Array:
    """One centre or several as rows, checked."""
    permitted = f"a name, or rows of {n} numbers whose squares are finite"
    try:
        centers = np.array(init, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError):
        raise ParameterError("init", init, permitted) from None
    if centers.ndim != 2 or centers.shape[1] != n or len(centers) == 0:
        raise ParameterError("init", f"an array of shape {np.shape(init)}", permitted)
    if not (np.abs(centers) < _LARGEST).all():
        raise ParameterError("init", init, permitted)
    return centers
