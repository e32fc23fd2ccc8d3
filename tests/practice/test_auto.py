"""The automatic choice: the learner that fits the place, never worse than Hebb's rule."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

from outlearn.model import Ensemble, angle, sample
from outlearn.practice import AutoSelectionClassifier


def direction_error(J, data):
    B = data.center
    return float(angle(J @ B / np.sqrt(B @ B), J @ J))


@pytest.mark.parametrize(
    ("contamination", "n", "p", "bayes"),
    [(0.93, 200, 400, True), (0.5, 60, 1200, False)],
    ids=["near", "easy"],
)
def test_the_choice_fits_the_place_and_is_not_worse_than_hebb(contamination, n, p, bayes):
    ours, hebb = [], []
    for seed in range(2):
        data = sample(Ensemble.from_contamination(contamination, gamma=10.0), n, p, seed)
        model = AutoSelectionClassifier(random_state=0).fit(data.X, data.y)
        assert (type(model.estimator_).__name__ == "BayesSelectionClassifier") == bayes
        ours.append(direction_error(model.coef_.ravel(), data))
        hebb.append(direction_error(data.y @ data.X, data))
    assert np.mean(ours) <= np.mean(hebb) + 0.01, (ours, hebb)


def test_more_classes_and_tiny_data_are_learned_without_a_diagnosis():
    X, y = load_wine(return_X_y=True)
    model = AutoSelectionClassifier(random_state=0).fit(X, y)
    assert model.diagnosis_ is None
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).shape == (178, 3)


def test_it_must_be_fitted():
    with pytest.raises(NotFittedError):
        AutoSelectionClassifier().predict([[0.0]])
