import hashlib
import json
import zipfile

import numpy as np
import pytest

from outlearn import DataError, Ensemble, sample
from outlearn.estimators import HardSelectionClassifier, HebbClassifier, SoftSelectionClassifier, load, save


@pytest.fixture(scope="module")
def data():
    return sample(Ensemble.from_contamination(0.5, gamma=10.0), 20, 200, rng=0)


@pytest.mark.parametrize(
    "model",
    [
        HebbClassifier(),
        SoftSelectionClassifier(covariance="tied", label_noise=0, garbage_covariance="learned"),
        HardSelectionClassifier(covariance="diag", label_noise=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_round_trip(model, data, tmp_path):
    model.fit(data.X, data.y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    for method in ("predict", "predict_proba", "decision_function", "score_samples"):
        np.testing.assert_array_equal(getattr(again, method)(data.X), getattr(model, method)(data.X))
    np.testing.assert_array_equal(again.inlier_proba_, model.inlier_proba_)
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_damage_is_seen(data, tmp_path):
    path = tmp_path / "m"
    save(HebbClassifier().fit(data.X, data.y), path)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="not an outlearn model file"):
            load(path)
    path.write_bytes(whole)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["header.json"] = parts["header.json"].replace(b"spherical", b"diag")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match="checksum"):
        load(path)


def test_every_flipped_bit_is_seen_or_harmless(data, tmp_path):
    path = tmp_path / "m"
    model = HebbClassifier().fit(data.X, data.y)
    save(model, path)
    whole = path.read_bytes()
    seen = 0
    for place in range(0, len(whole), 17):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            again = load(path)
        except DataError:
            seen += 1
        else:  # a date or a flag that nothing depends on
            np.testing.assert_array_equal(again.coef_, model.coef_)
    assert seen > 0.8 * len(whole) / 17


def test_a_header_that_was_written_anew_is_refused(data, tmp_path):
    path = tmp_path / "m"
    save(HebbClassifier().fit(data.X, data.y), path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(parts["header.json"])
    forged = [b"[]", b"null", b"[" * 100_000, json.dumps(header | {"params": "none"}).encode()]
    for text in forged:
        seal = json.loads(parts["seal.json"])
        seal["sha256"] = hashlib.sha256(text + parts["arrays.npz"]).hexdigest()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("seal.json", json.dumps(seal))
            archive.writestr("header.json", text)
            archive.writestr("arrays.npz", parts["arrays.npz"])
        with pytest.raises(DataError, match="does not describe a model"):
            load(path)


def test_foreign_files_are_refused(data, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "none")
    with pytest.raises(DataError, match="directory"):
        load(tmp_path)
    other = tmp_path / "other.npz"
    np.savez(other, a=np.arange(3))
    with pytest.raises(DataError, match="not an outlearn model file"):
        load(other)
    with pytest.raises(DataError, match="not fitted"):
        save(HebbClassifier(), tmp_path / "m")
    with pytest.raises(DataError, match="cannot be saved"):
        save(object(), tmp_path / "m")


def test_a_file_may_be_read_by_whom_the_folder_allows(data, tmp_path):
    save(HebbClassifier().fit(data.X, data.y), tmp_path / "model")
    (tmp_path / "plain").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert len(list(tmp_path.iterdir())) == 2
