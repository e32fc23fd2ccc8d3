"""How many bad examples there are, where an example may vouch for itself: by message passing.

Where the number of features is not small against that of examples, EM's own estimate of the contamination is
biased: an accepted example pulls the centre towards itself. Message passing takes the pull of every example
out, and neither its posterior mean nor the fraction of largest Bethe evidence has that bias. Where no
fraction stands out, half is assumed: that costs little against Hebb's rule whatever the truth, while a
fraction fitted to chance costs much.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from outlearn.inference.amp import AmpResult, AmpStatus, amp
from outlearn.inference.mixture import Beliefs, Mixture
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_step import mixture_at
from outlearn.inference.rows import Rows

__all__ = ["believing", "messages_of", "start_from"]

_STEPS = 200
_TOL = 1e-4
_NEUTRAL = 0.5  # contamination, unless the evidence for another one pays for a parameter
_PRICE = 2.0  # nats: chance gives as much in one case of twenty
_EDGE = 1e-3  # fractions are kept this far from 0 and 1


def messages_of(data: MixtureData, beliefs: Beliefs) -> AmpResult | None:
    """Learn the fractions of bad examples by message passing; None where its model is not this one.

    Its model: two classes, one variance, outliers around the midpoint (the paper's, Eq. distexam).
    """
    if data.n_classes != 2 or data.structure != "spherical" or beliefs.garbage != "shared":
        return None
    counts = data.label_weights.sum(axis=0)
    midpoint = data.origin + data.outward((data.label_sums / counts[:, None]).mean(axis=0)[None])[0]
    rows = Rows.of(
        data.X,
        signs=2.0 * data.labels - 1.0,
        sample_weight=data.weights,
        center=midpoint,
        n_threads=data.raw.n_threads,
    )
    garbage, flips = beliefs.contamination is None, beliefs.label_noise is None
    noise = data.variance if beliefs.noise_variance is None else beliefs.noise_variance
    # begun too narrow, the prior of the centre holds it near zero for hundreds of steps
    wide = replace(beliefs, contamination=0.8) if garbage else replace(beliefs, label_noise=0.4)
    if garbage and flips:
        wide = replace(wide, label_noise=0.05)
    neutral = mixture_at(data, wide, data.hebb)
    prior = neutral.center_variance if beliefs.center_variance is None else beliefs.center_variance
    learn = [name for name, given in asdict(beliefs).items() if given is None]
    settings: dict[str, Any] = {"max_iter": _STEPS, "tol": _TOL}
    found = amp(
        rows,
        contamination=0.5 if beliefs.contamination is None else beliefs.contamination,
        label_noise=0.2 if flips else (beliefs.label_noise or None),
        noise_variance=noise,
        center_variance=prior,
        learn=learn,
        **settings,
    )
    if not _usable(found):
        return None
    if flips:
        return found
    even = amp(
        rows,
        contamination=_NEUTRAL,
        label_noise=beliefs.label_noise or None,
        noise_variance=found.noise_variance,
        center_variance=found.center_variance,
        learn=[name for name in learn if name != "contamination"],
        init=found.center,
        **settings,
    )
    return even if _usable(even) and even.energy - found.energy < _PRICE else found


def _usable(found: AmpResult) -> bool:
    # its steps are safe: one that ran out of them is short of the optimum, not astray
    return found.status in (AmpStatus.CONVERGED, AmpStatus.MAX_ITER) and bool(np.isfinite(found.center).all())


def believing(beliefs: Beliefs, found: AmpResult) -> Beliefs:
    """Beliefs with the learned fractions as given."""
    epsilon, lam = beliefs.contamination, beliefs.label_noise
    if epsilon is None:
        epsilon = float(np.clip(found.contamination, _EDGE, 1.0 - (lam or 0.0) - _EDGE))
    if lam is None:
        # among the informative there, of all examples here
        lam = float(np.clip(found.label_noise, _EDGE, 0.5 - _EDGE)) * (1.0 - epsilon)
    return replace(beliefs, contamination=epsilon, label_noise=lam)


def start_from(data: MixtureData, beliefs: Beliefs, found: AmpResult) -> Mixture:
    """Start EM at the posterior mean of the centre."""
    return mixture_at(data, beliefs, data.working(found.center[None]))
