"""Algorithms on arrays, in raw units; no scikit-learn here."""

from outlearn.inference.amp import AmpResult, AmpStatus, amp
from outlearn.inference.gibbs import GibbsResult, GibbsStatus, gibbs
from outlearn.inference.hard import hard_em
from outlearn.inference.hebb import hebb
from outlearn.inference.many import ManyFits, hard_em_many, soft_em_many
from outlearn.inference.prior import SelectionPrior
from outlearn.inference.results import FitResult, FitStatus, StartOutcome
from outlearn.inference.rows import Reads, Rows
from outlearn.inference.soft import soft_em

__all__ = [
    "AmpResult",
    "AmpStatus",
    "FitResult",
    "FitStatus",
    "GibbsResult",
    "GibbsStatus",
    "ManyFits",
    "Reads",
    "Rows",
    "SelectionPrior",
    "StartOutcome",
    "amp",
    "gibbs",
    "hard_em",
    "hard_em_many",
    "hebb",
    "soft_em",
    "soft_em_many",
]
