"""How many bad examples there are, where an example may vouch for itself: by message passing.

Where the number of features is not small against that of examples, EM's own estimate of the contamination is
biased: an accepted example pulls the centre towards itself. Message passing takes the pull of every example
out, and neither its posterior mean nor the fraction of largest Bethe evidence has that bias. Where no
fraction stands out, half is assumed: that costs little against Hebb's rule whatever the truth, while a
fraction fitted to chance costs much.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outlearn.inference.amp import AmpResult, AmpStatus, amp
from outlearn.inference.mixture import Beliefs, Mixture
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_step import mixture_at
from outlearn.inference.rows import Rows

__all__ = ["believing", "messages_of", "start_from"]

_STEPS = 200
_TOL = 1e-4
_NEUTRAL = 0.5  # contamination, unless the evidence for another one pays for a parameter (as in the BIC)
_EDGE = 1e-3  # fractions are kept this far from 0 and 1


def messages_of(data: MixtureData, beliefs: Beliefs) -> AmpResult | None:
    """Learn the fraction of bad examples by message passing; None where its model is not this one.

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
    flips = beliefs.label_noise is None
    noise = data.variance if beliefs.noise_variance is None else beliefs.noise_variance
    # begun too narrow, the prior of the centre holds it near zero for hundreds of steps
    wide = replace(beliefs, label_noise=0.4) if flips else replace(beliefs, contamination=0.8)
    neutral = mixture_at(data, wide, data.hebb)
    prior = neutral.center_variance if beliefs.center_variance is None else beliefs.center_variance
    free = {
        "label_noise" if flips else "contamination": None,
        "noise_variance": beliefs.noise_variance,
        "center_variance": beliefs.center_variance,
    }
    learn = [name for name, given in free.items() if given is None]
    settings: dict[str, Any] = {"max_iter": _STEPS, "tol": _TOL}
    found = amp(
        rows,
        contamination=(beliefs.contamination or 0.0) if flips else 0.5,
        label_noise=0.2 if flips else (beliefs.label_noise or None),
        noise_variance=noise,
        center_variance=prior,
        learn=learn,
        **settings,
    )
    if not _usable(found):
        return None
    price = 0.5 * np.log(data.count)
    if flips or _rough_gain(found, data.weights) > 4.0 * price:
        return found
    even = amp(
        rows,
        contamination=_NEUTRAL,
        label_noise=beliefs.label_noise or None,
        noise_variance=found.noise_variance,
        center_variance=found.center_variance,
        learn=learn[1:],
        start=found.center,
        **settings,
    )
    gain = even.energy - found.energy
    return even if _usable(even) and gain < price else found


def _rough_gain(found: AmpResult, weights: NDArray[np.float64]) -> float:
    """Evidence for the learned contamination against one half, by Fisher's information."""
    share = np.clip(1.0 - found.contamination, _EDGE, 1.0 - _EDGE)
    score = (found.inlier_proba - share) / (share * (1.0 - share))
    return float(0.5 * (weights @ score**2) * (found.contamination - _NEUTRAL) ** 2)


def _usable(found: AmpResult) -> bool:
    # its steps are safe: one that ran out of them is short of the optimum, not astray
    return found.status in (AmpStatus.CONVERGED, AmpStatus.MAX_ITER) and bool(np.isfinite(found.center).all())


def believing(beliefs: Beliefs, found: AmpResult) -> Beliefs:
    """Beliefs with the learned fraction as given."""
    if beliefs.label_noise is None:
        # among the informative there, of all examples here
        share = found.label_noise * (1.0 - (beliefs.contamination or 0.0))
        return replace(beliefs, label_noise=float(np.clip(share, _EDGE, 0.5 - _EDGE)))
    top = 1.0 - beliefs.label_noise if beliefs.label_noise is not None else 1.0
    return replace(beliefs, contamination=float(np.clip(found.contamination, _EDGE, top - _EDGE)))


def start_from(data: MixtureData, beliefs: Beliefs, found: AmpResult) -> Mixture:
    """Start EM at the posterior mean of the centre."""
    return mixture_at(data, beliefs, data.working(found.center[None]))
