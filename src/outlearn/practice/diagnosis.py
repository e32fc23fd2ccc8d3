"""How much of labelled data is garbage, what error to expect, and which examples to trust."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.practice.effective import EffectiveEnsemble, estimate_ensemble
from outlearn.practice.estimate import Estimate
from outlearn.practice.folding import Folded, Structure, fold
from outlearn.practice.goodness import Goodness, assess
from outlearn.practice.position import Position, locate
from outlearn.practice.predictions import Prediction, predict_errors
from outlearn.practice.verdicts import Verdicts, judge

__all__ = ["Diagnosis", "diagnose"]

_AS_GOOD = 1.02  # a predicted error so much above the smallest counts as equal
_TELLTALE = 100.0  # γ from which a single feature that carries the signal is remarkable
_SELECTING = ("bayes", "soft", "hard", "hebb")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Diagnosis:
    """What labelled data say about themselves.

    Attributes
    ----------
    effective : EffectiveEnsemble
        Contamination, label noise, noise variance, gamma, eta with 90 % intervals; examples per feature.
    predictions : tuple of Prediction
        Error of every learner on data like these, the smallest first.
    recommended : str
        The learner to use: "bayes", "soft" or "hebb".
    reason : str
    positions : tuple of Position
        Place in the phase diagram of soft and hard selection and of the Bayes learner.
    verdicts : Verdicts
        Keep, doubtful or discard, for every example.
    goodness : Goodness
        How far the data look like the model, and how far to trust what is said here.
    warnings : tuple of str
    classes : array (2,)
    structure : str
        Covariance of the noise: "spherical", "diag" or "tied".
    n_samples, n_features : int
    fields : array (n_samples,)
        Cavity fields in units of the noise: 0 for garbage on average, ``separation`` for good examples.
    separation : float
    """

    effective: EffectiveEnsemble
    predictions: tuple[Prediction, ...]
    recommended: str
    reason: str
    positions: tuple[Position, ...]
    verdicts: Verdicts
    goodness: Goodness
    warnings: tuple[str, ...]
    classes: NDArray[Any]
    structure: str
    n_samples: int
    n_features: int
    fields: NDArray[np.float64]
    separation: float
    whitening_cost: float = 1.0

    @property
    def contamination(self) -> Estimate:
        """Share of garbage."""
        return self.effective.contamination

    @property
    def label_noise(self) -> Estimate:
        """Share of wrong labels among the rest."""
        return self.effective.label_noise

    @property
    def detected(self) -> bool:
        """Whether labels and inputs have anything to do with each other."""
        return self.effective.detected

    def prediction(self, learner: str) -> Prediction:
        """What the theory says of one learner."""
        for p in self.predictions:
            if p.learner == learner:
                return p
        raise ParameterError("learner", learner, f"one of {', '.join(p.learner for p in self.predictions)}")

    @property
    def verdict(self) -> str:
        """The whole in two or three sentences."""
        if not self.detected:
            return (
                "No signal: the inputs of the two labels do not differ more than chance explains. "
                "Either nearly all "
                "labels are garbage, or the examples are too few: collect more, or check some by hand."
            )
        c, f = self.contamination, self.label_noise
        counts = self.verdicts.counts
        best = self.prediction(self.recommended)
        parts = [f"{_percent(c.value)} of the examples are garbage{_range(c)}"]
        if f.value > 0.0:
            parts[0] += f", and {_percent(f.value)} of the rest carry the wrong label{_range(f)}"
        parts.append(
            f"{counts['keep']} examples can be kept, {counts['discard']} discarded, "
            f"{counts['doubtful']} are doubtful"
        )
        errors = f"{_percent(best.test_error.value)} errors on clean examples{_range(best.test_error)}"
        name = _LEARNER_NAMES[self.recommended]
        if self.goodness.trust == "poor":
            parts.append(
                f"Use {name} or the automatic classifier; the theory says {errors}, but of data that look "
                "like its model, which these do not"
            )
        else:
            parts.append(f"Use {name}: expect {errors}")
        return ". ".join(parts) + "."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "verdict": self.verdict,
            "detected": self.detected,
            "classes": [str(c) for c in self.classes],
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "structure": self.structure,
            "effective": self.effective.to_dict(),
            "recommended": self.recommended,
            "reason": self.reason,
            "predictions": [p.to_dict() for p in self.predictions],
            "positions": [p.to_dict() for p in self.positions],
            "goodness": self.goodness.to_dict(),
            "warnings": list(self.warnings),
            "verdicts": self.verdicts.to_dict(),
        }

    def to_frame(self) -> Any:
        """Return the predictions as a table, one row per learner."""
        import pandas as pd

        return pd.DataFrame(
            {
                "learner": p.learner,
                **{f"direction_error_{k}": v for k, v in p.direction_error.to_dict().items()},
                **{f"test_error_{k}": v for k, v in p.test_error.to_dict().items()},
                "stable": p.stable,
                "note": p.note,
            }
            for p in self.predictions
        )

    def __repr__(self) -> str:
        e = self.effective
        lines = [
            f"Diagnosis of {self.n_samples} examples with {self.n_features} features, "
            f"{self.classes[0]} against {self.classes[1]}",
            f"  {self.verdict}",
            f"  contamination   {e.contamination}",
            f"  label noise     {e.label_noise}",
            f"  noise variance  {e.noise_variance} ({self.structure})",
            f"  gamma           {e.gamma}   eta {e.eta}   alpha {e.alpha:.4g}",
        ]
        if self.predictions:
            lines.append("  predicted errors (direction error; test error on clean examples)")
            for p in self.predictions:
                mark = "*" if p.learner == self.recommended else " "
                lines.append(f"  {mark} {p.learner:9s} {p.direction_error}; {p.test_error}")
        lines += [f"  {sentence}" for position in self.positions[:1] for sentence in position.sentences]
        if self.detected:
            lines.append(f"  trust: {self.goodness.trust}. {self.goodness.statement}")
        lines += [f"  ! {note}" for note in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


_LEARNER_NAMES = {
    "bayes": "the Bayes classifier",
    "soft": "soft selection",
    "hard": "hard selection",
    "hebb": "Hebb's rule",
}


def diagnose(
    X: ArrayLike | Any,
    y: ArrayLike,
    *,
    fdr: float = 0.05,
    covariance: Structure = "auto",
    classes: tuple[Any, Any] | None = None,
    rng: np.random.Generator | int | None = 0,
) -> Diagnosis:
    """Estimate how much of labelled data is garbage, and predict what can be learned from the rest.

    The data are folded by their labels, centred half way between the classes and whitened by the noise within
    them; message passing with parameters of largest evidence gives the effective ensemble, and the replica
    theory of that ensemble the predictions.

    Parameters
    ----------
    X : array, data frame or sparse matrix (n_samples, n_features)
    y : array (n_samples,)
        Labels. Of more than two classes the two hardest to tell apart are diagnosed (``classes`` names
        others).
    fdr : float
        Share of false verdicts allowed among the kept and among the discarded examples.
    covariance : {"auto", "spherical", "diag", "tied"}
        Structure of the noise; "auto" takes the simplest that predicts held-out residuals well.
    classes : pair of labels, optional
    rng : Generator or int
        For the bootstrap of the goodness of fit.

    Examples
    --------
    >>> from outlearn.model import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.8, gamma=10.0), n_features=100, n_samples=2000, rng=0)
    >>> d = diagnose(data.X, data.y)
    >>> 0.8 in d.contamination, d.recommended, d.goodness.trust
    (True, 'soft', 'good')
    """
    if isinstance(fdr, bool | str) or not 0.0 < fdr < 0.5:
        raise ParameterError("fdr", fdr, "a share in (0, 0.5)")
    folded = fold(X, y, structure=covariance, classes=classes)
    effective = estimate_ensemble(folded)
    notes = list(folded.warnings)
    predictions: tuple[Prediction, ...] = ()
    positions: tuple[Position, ...] = ()
    if effective.detected:
        predictions = predict_errors(effective, whitening_cost=folded.whitening_cost)
        ensemble = _as_two_states(effective)
        positions = tuple(locate(ensemble, effective.alpha, name) for name in ("soft", "hard", "bayes"))
    else:
        if effective.evidence > effective.label_evidence:
            notes.append(
                "the inputs are no plain cloud (they have groups or stray examples), but the labels have "
                "nothing to do with that"
            )
        effective = _undetermined(effective)
        notes.append("no signal was found: shares of garbage and of wrong labels cannot be told")
    recommended, reason = _recommend(effective, predictions, positions)
    goodness = assess(folded, rng)
    notes += _warnings(folded, effective, goodness)
    notes += _telltales(folded, effective, getattr(X, "columns", None))
    return Diagnosis(
        effective=effective,
        predictions=predictions,
        recommended=recommended,
        reason=reason,
        positions=positions,
        verdicts=_verdicts(folded, effective, fdr),
        goodness=goodness,
        warnings=tuple(notes),
        classes=folded.classes,
        structure=folded.structure,
        n_samples=effective.n_samples,
        n_features=effective.n_features,
        **_fields(folded),
        whitening_cost=folded.whitening_cost,
    )


def _as_two_states(effective: EffectiveEnsemble) -> Ensemble:
    """The paper's ensemble, in which a wrong label is garbage."""
    right = (1.0 - effective.contamination.value) * (1.0 - effective.label_noise.value)
    return Ensemble.from_contamination(min(1.0 - right, 1.0 - 1e-9), gamma=effective.gamma.value)


def _undetermined(effective: EffectiveEnsemble) -> EffectiveEnsemble:
    """Say that shares are unknown where there is no signal."""
    return replace(
        effective,
        contamination=Estimate(effective.contamination.value, 0.0, 1.0),
        label_noise=Estimate(effective.label_noise.value, 0.0, 0.5),
        eta=Estimate(effective.eta.value, -math.inf, math.inf),
        gamma=Estimate(effective.gamma.value, 0.0, effective.gamma.high),
    )


def _recommend(
    effective: EffectiveEnsemble, predictions: tuple[Prediction, ...], positions: tuple[Position, ...]
) -> tuple[str, str]:
    if not predictions:
        return "bayes", "no signal was found; the Bayes classifier is the one that does not invent one"
    by_name = {p.learner: p.direction_error.value for p in predictions}
    safe = {p.learner: p.safe for p in positions}
    best = min(by_name.get(name, math.inf) for name in _SELECTING)
    if effective.contamination.high < 0.02 and by_name.get("hebb", math.inf) <= _AS_GOOD * best:
        return "hebb", "there is hardly any garbage, and the mean of all examples is as good as anything"
    if by_name.get("soft", math.inf) <= _AS_GOOD * best and safe.get("soft", False):
        return "soft", "soft selection is as good as the Bayes bound here, and the cheapest that is"
    if not safe.get("soft", True):
        return (
            "bayes",
            "soft selection is on the wrong side of its transition or near it; message passing is not",
        )
    return "bayes", "the posterior mean has the smallest predicted error"


def _verdicts(folded: Folded, effective: EffectiveEnsemble, fdr: float) -> Verdicts:
    found = folded.posterior
    if not effective.detected:
        # without a signal nothing can be said for or against an example
        return judge(np.full(folded.selected.size, 0.5), fdr=fdr, index=folded.selected)
    share = {float(v): found.posterior[:, k] for k, v in enumerate(found.values)}
    return judge(share[1.0], share.get(-1.0), fdr=fdr, index=folded.selected)


def _fields(folded: Folded) -> dict[str, Any]:
    found = folded.posterior
    length = float(np.linalg.norm(found.center))
    noise = math.sqrt(found.noise_variance)
    return {
        "fields": found.cavity_fields / (max(length, 1e-300) * noise),
        "separation": length / noise,
    }


def _warnings(folded: Folded, effective: EffectiveEnsemble, goodness: Goodness) -> list[str]:
    notes = list(goodness.complaints)
    if not folded.posterior.converged:
        notes.append(f"message passing {folded.posterior.status}")
    if effective.alpha < 1.0:
        notes.append(
            "fewer examples than features: errors are large for every method; more examples help most"
        )
    if folded.whitening_cost < 0.9:
        notes.append(
            f"estimating the covariance of {effective.n_features} features from "
            f"{effective.n_samples} examples "
            f"costs {100 * (1 - math.sqrt(folded.whitening_cost)):.0f} % of the cosine; it is in the "
            f"predictions"
        )
    if folded.structure == "tied" and effective.alpha < 15.0:
        notes.append(
            "a full covariance was estimated from fewer than 15 examples per feature: shares of garbage and "
            "signal strength are biased by it, their intervals too narrow"
        )
    up = float((folded.signs > 0).mean())
    if min(up, 1.0 - up) < 0.2:
        notes.append(
            f"classes of unequal size ({100 * min(up, 1 - up):.0f} % of the smaller): of equal classes "
            f"{100 * effective.balance:.0f} % of the examples would do; it is in the predictions"
        )
    if effective.detected and effective.gamma.value < 2.0 and effective.contamination.high > 0.3:
        notes.append(
            "the classes overlap so much that garbage is hard to tell from informative examples: "
            "verdicts on single examples will rarely be sure"
        )
    return notes


def _telltales(folded: Folded, effective: EffectiveEnsemble, names: Any) -> list[str]:
    """Name a feature that tells the label nearly alone: one that will not be there when it matters?"""
    share = folded.posterior.center**2 / max(float((folded.posterior.center**2).sum()), 1e-300)
    best = int(share.argmax())
    if not effective.detected or effective.gamma.value < _TELLTALE or share[best] < 0.5:
        return []
    column = int(folded.columns[best])
    name = f"feature {column}" if names is None else repr(str(names[column]))
    return [f"{name} tells the label nearly alone: make sure that it is known before the label is"]


def _percent(share: float) -> str:
    if 0.0 < share < 5e-4:
        return "under 0.1 %"
    if share == 0.0:
        return "0 %"
    return f"{100 * share:.1f} %" if share < 0.1 or share > 0.99 else f"{100 * share:.0f} %"


def _range(e: Estimate) -> str:
    """The interval in brackets, unless it reads like the value."""
    ends = _percent(e.low), _percent(e.high)
    return "" if set(ends) == {_percent(e.value)} else f" ({ends[0]} to {ends[1]})"
