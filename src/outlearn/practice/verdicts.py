"""Keep, doubtful, discard: a verdict on every example, with the share of false ones under control.

The probabilities come from message passing, whose field on an example leaves the example itself out: with
fewer examples than features an example would otherwise vouch for itself. Their mean over any set of examples
is the expected share of errors in it (Bayesian false-discovery rate): a set grows, from the surest example
on, as long as that mean stays below the nominal rate and the verdict is more likely right than wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import ParameterError

__all__ = ["Verdicts", "judge"]

Array = NDArray[np.float64]
KEEP, DOUBTFUL, DISCARD = "keep", "doubtful", "discard"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Verdicts:
    """One verdict per example.

    Attributes
    ----------
    keep_proba, garbage_proba, wrong_label_proba : arrays (n_samples,)
        Probabilities that the example is informative with the right label, garbage, informative with the
        wrong label; they sum to one.
    verdict : array of str (n_samples,)
        "keep", "doubtful" or "discard".
    fdr : float
        Nominal share of false verdicts among the kept, and among the discarded.
    expected_false_keep, expected_false_discard : float
        What the model expects of the two shares.
    index : array (n_samples,)
        Row of every example in the data that were given.
    """

    keep_proba: Array
    garbage_proba: Array
    wrong_label_proba: Array
    verdict: NDArray[np.str_]
    fdr: float
    expected_false_keep: float
    expected_false_discard: float
    index: NDArray[np.intp]

    @property
    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {name: int((self.verdict == name).sum()) for name in (KEEP, DOUBTFUL, DISCARD)}

    def most_doubtful(self, n: int = 20) -> NDArray[np.intp]:
        """Positions of the examples that a look by hand would tell most about, the most doubtful first."""
        mean = self.keep_proba - self.wrong_label_proba
        variance = self.keep_proba + self.wrong_label_proba - mean**2
        return np.argsort(-variance, kind="stable")[:n]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists."""
        return {
            "fdr": self.fdr,
            **{f"n_{name}": count for name, count in self.counts.items()},
            "expected_false_keep": self.expected_false_keep,
            "expected_false_discard": self.expected_false_discard,
            "examples": self.to_frame().to_dict("records"),
        }

    def to_frame(self) -> Any:
        """Return a table, one row per example."""
        import pandas as pd

        return pd.DataFrame(
            {
                "row": self.index,
                "verdict": self.verdict,
                "keep_proba": self.keep_proba,
                "garbage_proba": self.garbage_proba,
                "wrong_label_proba": self.wrong_label_proba,
            }
        )

    def __repr__(self) -> str:
        n = self.counts
        return (
            f"Verdicts(keep {n[KEEP]}, doubtful {n[DOUBTFUL]}, discard {n[DISCARD]}; "
            f"at most {self.fdr:.0%} false among the kept and among the discarded)"
        )


def judge(
    keep: ArrayLike,
    wrong_label: ArrayLike | None = None,
    *,
    fdr: float = 0.05,
    index: ArrayLike | None = None,
) -> Verdicts:
    """Turn probabilities into verdicts of which a share of at most ``fdr`` is expected to be false.

    >>> judge([0.99, 0.97, 0.6, 0.02], fdr=0.05).verdict.tolist()
    ['keep', 'keep', 'doubtful', 'discard']
    """
    if isinstance(fdr, bool | str) or not 0.0 < fdr < 0.5:
        raise ParameterError("fdr", fdr, "a share in (0, 0.5)")
    p = np.clip(np.asarray(keep, dtype=np.float64), 0.0, 1.0)
    wrong = np.zeros(p.size) if wrong_label is None else np.asarray(wrong_label, dtype=np.float64)
    kept, dropped = _surest(1.0 - p, fdr), _surest(p, fdr)
    # where nearly all is sure, the rate alone would keep examples that are more likely wrong than right
    kept &= p >= 0.5
    dropped &= p < 0.5
    false_keep = float(np.mean(1.0 - p[kept])) if kept.any() else 0.0
    false_discard = float(np.mean(p[dropped])) if dropped.any() else 0.0
    verdict = np.full(p.size, DOUBTFUL, dtype="<U8")
    verdict[kept], verdict[dropped] = KEEP, DISCARD
    return Verdicts(
        keep_proba=p,
        garbage_proba=np.clip(1.0 - p - wrong, 0.0, 1.0),
        wrong_label_proba=wrong,
        verdict=verdict,
        fdr=float(fdr),
        expected_false_keep=false_keep,
        expected_false_discard=false_discard,
        index=np.arange(p.size) if index is None else np.asarray(index),
    )


def _surest(error: Array, fdr: float) -> NDArray[np.bool_]:
    """The largest set of smallest errors whose mean is at most ``fdr``."""
    order = np.argsort(error, kind="stable")
    mean = np.cumsum(error[order]) / np.arange(1, error.size + 1)
    n = int(np.searchsorted(mean, fdr, side="right"))
    chosen = np.zeros(error.size, dtype=bool)
    chosen[order[:n]] = True
    return chosen
