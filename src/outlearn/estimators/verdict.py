"""The verdict on the members: what share each has in the pooled rule, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outlearn.estimators.members import Tried
from outlearn.estimators.trial import Trial
from outlearn.inference.pooling import Calibration, behind, steady_weights

__all__ = ["Verdict", "weigh"]

Array = NDArray[np.float64]

_SAYS_SOMETHING = 1.5  # standard errors that the best rule must be better than none
_CLEARLY_BEHIND = 2.0  # standard errors that another rule must be better than the posterior mean
_TOO_LITTLE = 0.05  # weight below which a member is left out of the pool
_CAUTIOUS = ("hebb", "lda")  # learn no more from the labels than the classes' means


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """What the comparison came to: one entry per member."""

    weights: Array
    units: Array
    """What brings the members' scores to one scale before they are added: one over their spread."""
    shifts: Array
    """What is added to the members' thresholds, in the units of their scores."""
    held_out: Array
    behind: Array
    reason: str


def weigh(trial: Trial, tried: list[Tried], calibrations: tuple[Calibration, ...], pool: bool) -> Verdict:
    """Weight of every member, how far behind the best it is, and why, in words."""
    labels, weights = trial.labels[trial.shown], trial.weights[trial.shown]
    # a member that knows garbage by its input may foretell labels better than its rule alone
    logs = np.array(
        [
            c.log_proba if t.own is None or weights @ t.own <= weights @ c.log_proba else t.own
            for t, c in zip(tried, calibrations, strict=True)
        ]
    )
    frequencies = np.bincount(labels, weights, trial.n_classes) / weights.sum()
    z = behind(logs, weights)
    gain = float(behind(np.vstack([logs, np.log(frequencies[labels])]), weights)[-1])
    names = [t.member.name for t in tried]
    order = np.argsort(z)
    spread = [np.sqrt(weights @ (t.held_out**2).mean(axis=1) / weights.sum()) for t in tried]
    shifts = np.array([c.offset / c.slope for c in calibrations])
    out = np.zeros(len(tried))
    trusted: tuple[str, ...] = ()
    if "bayes" in names and z[names.index("bayes")] < _CLEARLY_BEHIND and trial.looks_spherical():
        trusted = ("bayes",)
        shifts = np.zeros_like(shifts)
        reason = "the features look like the model's, where no rule beats the posterior mean"
    elif gain < _SAYS_SOMETHING and any(t.member.selects for t in tried):
        trusted = tuple(name for name in names if name in _CAUTIOUS) or tuple(names)
        reason = (
            f"held-out labels say next to nothing (the best rule gains {gain:.1f} standard errors): there "
            "the rules that need to learn least are safest"
        )
    if trusted:
        out = np.array([float(name in trusted) for name in names])
    else:
        if pool:
            out = steady_weights(logs, weights, trial.fold)
            out[out < _TOO_LITTLE] = 0.0
        else:
            out[order[0]] = 1.0
        rest = ", ".join(f"{names[i]} ({z[i]:.1f})" for i in order[1:])
        reason = f"held-out labels: {names[order[0]]} leads" + (f" {rest} by so many σ" if rest else "")
    return Verdict(
        weights=out / out.sum(),
        units=1.0 / np.maximum(spread, 1e-300),
        shifts=shifts,
        held_out=logs @ weights / weights.sum(),
        behind=z,
        reason=reason,
    )
