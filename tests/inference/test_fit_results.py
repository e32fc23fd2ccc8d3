import json

import numpy as np

from outlearn.inference.results import FitResult, FitStatus, StartOutcome


def make():
    starts = tuple(
        StartOutcome(name=n, energy=e, n_iter=3, residual=1e-9, status=FitStatus.CONVERGED, overlap=o)
        for n, e, o in [("hebb", 2.0, 0.5), ("random", 1.0, 1.0)]
    )
    return FitResult(
        center=np.ones(2),
        inlier_proba=np.array([0.5, 1.0, 0.0]),
        energy=1.0,
        n_iter=3,
        n_reads=9,
        status=FitStatus.CONVERGED,
        contamination=0.5,
        noise_variance=0.1,
        center_variance=0.5,
        starts=starts,
    )


def test_to_dict_is_plain():
    back = json.loads(json.dumps(make().to_dict()))
    assert back["center"] == [1.0, 1.0]
    assert back["status"] == "CONVERGED"
    assert back["starts"][0]["name"] == "hebb"


def test_table_of_starts_is_sorted_by_energy():
    assert make().to_frame()["name"].tolist() == ["random", "hebb"]


def test_reads_as_sentences():
    text = repr(make())
    assert "converged" in text
    assert "1.5 of 3 examples informative" in text
    assert "2 starts: 2 converged, 1 to this centre" in text
    assert not FitStatus.ALL_REJECTED.converged
