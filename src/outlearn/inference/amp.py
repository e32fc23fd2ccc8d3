"""Bayes-optimal selection by approximate message passing: the posterior mean of the centre.

No other estimate has a smaller expected distance to the truth. The model of a folded row is y = V c + noise
with V from a few values. The algorithm is in :mod:`outlearn.inference.messages`, its theory in the docs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import ParameterError
from outlearn.inference.fitting import readable
from outlearn.inference.messages import AmpStatus, AmpStep, Model, Passing
from outlearn.inference.prior import (
    CenterPrior,
    SelectionPrior,
    learnable,
    refuse_silence,
    selection_prior,
)
from outlearn.inference.rows import Reads
from outlearn.inference.selection import Beliefs, Selection
from outlearn.inference.starts import STARTS, given_centers
from outlearn.model.checks import count, generator, number, positive

__all__ = ["AmpResult", "AmpStatus", "AmpStep", "amp"]

Array = NDArray[np.float64]

_GUESSES = (0.5, 0.8, 0.95)  # contaminations tried where it is to be learned: the evidence chooses
_FIRST_STEPS = 20  # steps after which only the start of lowest energy goes on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AmpResult:
    """Posterior of the centre and of every V, in raw units (c = J/√N).

    Attributes
    ----------
    center : array (n_features,)
        Posterior mean of the centre.
    center_std : array (n_features,)
        Posterior standard deviation of every coordinate.
    values, posterior : array (K,), array (n_samples, K)
        Values of V and their posterior probabilities.
    inlier_proba : array (n_samples,)
        Probability that V is not 0.
    cavity_fields : array (n_samples,)
        Mean of the field y·c of every example when it is left out: what it would have if it were fresh.
    cavity_variance : float
        Variance of that field under the posterior of the centre.
    free_energy : float
        Bethe free energy G, in excess of pure noise.
    energy : float
        Bethe estimate of -ln P(data), labels included: comparable between parameters and between starts.
    residual : float
        Undamped |F(m) - m| over the root of the posterior's second moment.
    contamination, label_noise, noise_variance, center_variance : float
        As given, or as learned. (``label_noise``: share of flipped labels among the informative.)
    starts : tuple
        Name, energy, and status of every start, lowest energy first.
    steps : tuple of AmpStep
    """

    center: Array
    center_std: Array
    values: Array
    posterior: Array
    inlier_proba: Array
    cavity_fields: Array
    cavity_variance: float
    free_energy: float
    energy: float
    n_iter: int
    n_reads: int
    status: AmpStatus
    residual: float
    contamination: float
    label_noise: float
    noise_variance: float
    center_variance: float
    starts: tuple[tuple[str, float, AmpStatus], ...] = ()
    steps: tuple[AmpStep, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the messages are a fixed point."""
        return self.status.converged

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python values (arrays as lists, without the steps)."""
        out: dict[str, Any] = {}
        for name in self.__slots__:
            if name == "steps":
                continue
            value = getattr(self, name)
            out[name] = value.tolist() if isinstance(value, np.ndarray) else value
        out["status"] = self.status.name
        out["starts"] = [
            {"name": name, "energy": energy, "status": status.name} for name, energy, status in self.starts
        ]
        return out

    def to_frame(self) -> Any:
        """Return the accepted steps as a pandas table."""
        import pandas as pd

        return pd.DataFrame([{n: getattr(s, n) for n in AmpStep.__slots__} for s in self.steps])

    def __repr__(self) -> str:
        p = self.inlier_proba
        return "\n".join(
            [
                f"AmpResult: {self.status}",
                f"  -ln evidence {self.energy:.8g} after {self.n_iter} steps, {self.n_reads} reads, "
                f"residual {self.residual:.1e}",
                f"  {p.sum():.1f} of {p.size} examples informative; contamination {self.contamination:.4g}, "
                f"label noise {self.label_noise:.4g}",
                f"  |center| {np.linalg.norm(self.center):.6g}, posterior std {self.center_std.mean():.4g}; "
                f"noise variance {self.noise_variance:.6g}, center variance {self.center_variance:.6g}",
            ]
        )


def amp(
    X: ArrayLike | Reads,
    y: ArrayLike | None = None,
    *,
    contamination: float = 0.5,
    noise_variance: float,
    center_variance: float | None = None,
    label_noise: float | None = None,
    selection: SelectionPrior | None = None,
    center_prior: Literal["gaussian", "sphere"] = "gaussian",
    learn: Iterable[str] = (),
    init: str | ArrayLike = "auto",
    damping: float | Literal["adaptive"] = "adaptive",
    max_iter: int = 1000,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    on_step: Callable[[Array], None] | None = None,
    rng: np.random.Generator | int | None = None,
    n_threads: int = 1,
) -> AmpResult:
    """Bayes-optimal selection by message passing: the posterior mean of the centre (docs: theory/amp).

    Parameters
    ----------
    X, y
        Data (n_samples, n_features) and labels -1, +1, or a :class:`~outlearn.inference.rows.Reads`.
    contamination, noise_variance, center_variance
        Outlier fraction, variance of a cluster, prior variance of a coordinate of the centre (None: 1/N).
    label_noise
        Fraction of the informative examples whose label is flipped; None: labels are right.
    selection
        Any prior on V over a finite set of values; replaces ``contamination`` and ``label_noise``.
    center_prior
        "gaussian", or "sphere" |c|² = N center_variance.
    learn
        Any of "contamination", "label_noise", "noise_variance", "center_variance": set along the way to
        the values of largest evidence (with ``selection``, "contamination" learns all its weights).
    init
        "zero" (the prior mean, as state evolution; its first step is Hebb's rule, so "hebb" is the same),
        "random", "spectral", an array (N,), or "auto": zero, but spectral where the mean of V is 0; from
        several guesses of the contamination where that is learned, of which only the one of largest
        evidence goes on after the first steps.
    damping
        "adaptive": message passing, and safe steps where it lets G rise or oscillates. A number in [0, 1)
        is the weight of the old messages, kept throughout, 0 being the bare algorithm; it may diverge, and
        the status says so.
    max_iter
        Reads of the data allowed to each start.
    on_step
        Called with the posterior mean of the centre after every accepted step.

    Examples
    --------
    >>> from outlearn.model import Ensemble, sample
    >>> data = sample(Ensemble(eta=2.0, gamma=10.0), n_features=100, n_samples=2000, rng=0)
    >>> found = amp(data.X, data.y, contamination=0.88, noise_variance=0.1)
    >>> found.converged, found.n_reads < 20
    (True, True)
    """
    rows = readable(X, y, sample_weight, n_threads)
    reads_before = rows.n_reads
    prior = selection_prior(selection, contamination, label_noise)
    model = Model(
        prior,
        positive("noise_variance", noise_variance),
        CenterPrior(
            rows.shape[1],
            1.0 / rows.shape[1] if center_variance is None else positive("center_variance", center_variance),
            center_prior,
        ),
        learnable(learn, prior),
    )
    refuse_silence(rows, model.learn)
    if "center_variance" in model.learn and center_prior == "sphere":
        raise ParameterError("learn", "center_variance", "a Gaussian prior: a sphere's radius is given")
    if not (isinstance(damping, str) and damping == "adaptive"):
        damping = number("damping", damping, "'adaptive' or a number in [0, 1)", lambda d: 0.0 <= d < 1.0)
    tol, max_iter = positive("tol", tol), count("max_iter", max_iter)

    starts = _starts(rows, model, init, generator("rng", rng))
    runs = [(name, Passing(rows, begin, center, damping, tol, on_step)) for name, begin, center in starts]
    if len(runs) > 1:
        for _, run in runs:
            run.advance(min(_FIRST_STEPS, max_iter))
    runs.sort(key=lambda run: run[1].energy)
    best = runs[0][1]
    for _, dropped in runs[1:]:
        dropped.drop()
    best.advance(max_iter)
    outcomes = tuple((name, run.energy, run.status) for name, run in runs)
    return replace(_upright(_result(best)), n_reads=rows.n_reads - reads_before, starts=outcomes)


def _result(passing: Passing) -> AmpResult:
    """Gather what the last accepted read knows."""
    m, s, read, model = passing.center, passing.variance, passing.read, passing.model
    assert read is not None  # the first read is always accepted
    S = s * m.size
    values = np.asarray(model.selection.values)
    return AmpResult(
        center=m,
        center_std=np.full(m.size, math.sqrt(s)),
        values=values,
        posterior=read.moments.weights,
        inlier_proba=read.moments.weights[:, values != 0.0].sum(axis=1),
        cavity_fields=read.fields - S * read.moments.mean,
        cavity_variance=S * model.noise,
        free_energy=passing.free_energy(read, m, s),
        energy=passing.energy,
        n_iter=passing.n_iter,
        n_reads=passing.n_iter,
        status=passing.status,
        residual=passing.residual,
        contamination=model.selection.contamination,
        label_noise=model.selection.label_noise,
        noise_variance=model.noise,
        center_variance=model.centre.variance,
        steps=tuple(passing.steps),
    )


def _upright(result: AmpResult) -> AmpResult:
    """Of a solution and its mirror image (-c, -V), which fit alike, the one that trusts most labels."""
    if result.label_noise <= 0.5 or not np.array_equal(result.values, -result.values[::-1]):
        return result
    return replace(
        result,
        center=-result.center,
        cavity_fields=-result.cavity_fields,
        posterior=result.posterior[:, ::-1],
        label_noise=1.0 - result.label_noise,
    )


def _starts(
    rows: Reads, model: Model, init: str | ArrayLike, rng: np.random.Generator
) -> list[tuple[str, Model, Array | None]]:
    """Name, model and centre (None: the prior mean) of every start."""
    n = rows.shape[1]
    if not isinstance(init, str):
        centers = given_centers(init, n)
        if len(centers) != 1:
            raise ParameterError("init", f"an array of shape {np.shape(init)}", f"a name, or {n} numbers")
        return [("given", model, centers[0])]
    if init == "auto":
        name = "zero" if model.selection.mean != 0.0 else "spectral"
        begin = None if name == "zero" else _named(rows, model, "spectral", rng)
        if "contamination" not in model.learn or model.selection.contamination == 0.0:
            return [(name, model, begin)]
        given = model.selection.contamination
        guesses = [g for g in _GUESSES if abs(g - given) > 0.05]
        return [(f"{name}, contamination {given:.3g}", model, begin)] + [
            (f"{name}, contamination {g:.3g}", _with_contamination(model, g), begin) for g in guesses
        ]
    if init in ("zero", "hebb"):
        return [(init, model, None)]
    if init in ("random", "spectral"):
        return [(init, model, _named(rows, model, init, rng))]
    raise ParameterError("init", init, "'auto', 'zero', 'hebb', 'random', 'spectral' or an array")


def _with_contamination(model: Model, guess: float) -> Model:
    """The same model at another contamination."""
    old = model.selection
    scale = (1.0 - guess) / (1.0 - old.contamination)
    weights = tuple(guess if v == 0.0 else w * scale for v, w in zip(old.values, old.weights, strict=True))
    return replace(model, selection=SelectionPrior(old.values, weights))


def _named(rows: Reads, model: Model, name: str, rng: np.random.Generator) -> Array:
    """A centre from the starts that selection by EM uses."""
    selection = model.selection
    outliers = min(selection.contamination, 1.0 - 1e-6)
    beliefs = Beliefs(
        contamination=outliers, noise_variance=model.noise, center_variance=model.centre.variance
    )
    return STARTS[name](Selection(rows, hard=False), beliefs, rng)
