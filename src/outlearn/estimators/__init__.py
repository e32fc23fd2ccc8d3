"""scikit-learn classifiers that select the informative examples by themselves."""

from outlearn.estimators.auto import AutoSelectionClassifier
from outlearn.estimators.base import SelectionClassifier
from outlearn.estimators.bayes import BayesSelectionClassifier
from outlearn.estimators.files import load, save
from outlearn.estimators.hard import HardSelectionClassifier
from outlearn.estimators.hebb import HebbClassifier
from outlearn.estimators.soft import SoftSelectionClassifier

__all__ = [
    "AutoSelectionClassifier",
    "BayesSelectionClassifier",
    "HardSelectionClassifier",
    "HebbClassifier",
    "SelectionClassifier",
    "SoftSelectionClassifier",
    "load",
    "save",
]
