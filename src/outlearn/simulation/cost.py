"""What a draw costs, dense or matrix-free, so that the cheaper one is chosen before anything is drawn."""

from __future__ import annotations

from outlearn.model import Ensemble

__all__ = ["cheaper_draw", "dense_bytes", "expected_iterations", "is_small", "run_seconds"]

# Nanoseconds on one core; only their ratios matter. A normal, a number of X in one EM pass (streamed from
# memory), a number of a basis vector read once.
_NORMAL, _PASS, _BASIS = 7.5, 0.55, 0.8
# A new direction reads each side's two bases about this often: projections, their second pass, the action.
_READS = 7.0
_STEP = 200_000.0  # what a matrix-free step costs however small the problem is
# The same where a whole step is compiled; there a number of a basis vector may come from the cache, and the
# weights of the examples are worth counting.
_COMPILED_STEP, _CACHED_BASIS, _WEIGH = 15_000.0, 0.2, 5.0
_CACHE = 1 << 22
_DENSE_LIMIT = 1 << 31
_COMPILED_LIMIT = 1 << 28


def expected_iterations(ensemble: Ensemble) -> float:
    """How many EM steps a run takes, roughly: 15 at η = 0, 27 at η = 2, hundreds where the transition is.

    >>> expected_iterations(Ensemble(eta=0.0, gamma=10.0))
    15.0
    """
    eta = max(0.0, ensemble.eta)
    return 15.0 + 3.0 * eta**2 if eta < 3.0 else 200.0


def dense_bytes(n_features: int, n_samples: int) -> int:
    """Memory of the matrix in float64."""
    return 8 * n_features * n_samples


def is_small(n_features: int, n_samples: int) -> bool:
    """Whether a matrix-free run is compiled as a whole, without a bound on its memory.

    >>> is_small(100, 2000), is_small(20_000, 400_000)
    (True, False)
    """
    return dense_bytes(n_features, n_samples) <= _COMPILED_LIMIT


def cheaper_draw(n_features: int, n_samples: int, ensemble: Ensemble, *, compiled: bool = False) -> str:
    """Choose "dense" or "matrix-free" by the time that each is expected to take.

    ``compiled`` says that the algorithm is one of which small matrix-free runs are compiled.

    >>> cheaper_draw(100, 2000, Ensemble(eta=0.0, gamma=10.0))
    'dense'
    >>> cheaper_draw(100, 2000, Ensemble(eta=0.0, gamma=10.0), compiled=True)
    'matrix-free'
    >>> cheaper_draw(20_000, 400_000, Ensemble(eta=0.0, gamma=10.0))
    'matrix-free'
    """
    if dense_bytes(n_features, n_samples) > _DENSE_LIMIT:
        return "matrix-free"
    return min(
        ("dense", "matrix-free"),
        key=lambda draw: run_seconds(n_features, n_samples, ensemble, draw, compiled=compiled),
    )


def run_seconds(
    n_features: int, n_samples: int, ensemble: Ensemble, draw: str, *, compiled: bool = False
) -> float:
    """Seconds that a run is expected to take, to be right within a factor of a few."""
    steps = expected_iterations(ensemble)
    if draw == "dense":
        return 1e-9 * n_features * n_samples * (_NORMAL + steps * _PASS)
    numbers = n_features + n_samples
    weigh, basis, step = 0.0, _BASIS, _STEP
    if compiled and is_small(n_features, n_samples):
        cached = 8.0 * numbers * steps <= _CACHE  # two bases a side, half of the steps on average
        weigh, basis, step = _WEIGH, _CACHED_BASIS if cached else _BASIS, _COMPILED_STEP
    per_step = numbers * (_NORMAL + weigh + _READS * basis * steps / 2.0) + step
    return 1e-9 * steps * per_step
