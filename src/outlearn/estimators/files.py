"""Model files: plain arrays and a JSON header in a zip, no pickle, so that loading runs no code."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from outlearn.estimators.base import SelectionClassifier
from outlearn.exceptions import DataError
from outlearn.inference.covariance import Covariance
from outlearn.inference.mixture import Mixture
from outlearn.inference.posterior import FittedMixture
from outlearn.inference.results import FitStatus

__all__ = ["load", "save"]

_FORMAT = "outlearn-model"
_VERSION = 1
_MIXTURE_ARRAYS = (
    "midpoint",
    "centers",
    "garbage_center",
    "states",
    "class_prior",
    "garbage_labels",
)


def save(estimator: SelectionClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file that appears whole or not at all.

    Parameters and everything that prediction needs are kept; a stream's running statistics are not.

    >>> import tempfile, numpy as np, outlearn
    >>> data = outlearn.sample(outlearn.Ensemble(eta=0.0, gamma=10.0), 20, 200, rng=0)
    >>> model = outlearn.HebbClassifier().fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model")
    ...     again = load(f"{folder}/model")
    >>> bool(np.array_equal(again.predict(data.X), model.predict(data.X)))
    True
    """
    kind = type(estimator).__name__
    if kind not in _allowed() or type(estimator) is not _allowed()[kind]:
        raise DataError(f"{kind} cannot be saved: only {', '.join(sorted(_allowed()))}")
    if not hasattr(estimator, "model_"):
        raise DataError(f"this {kind} is not fitted yet: call fit before save")
    model: FittedMixture = estimator.model_
    m = model.mixture
    arrays = {name: getattr(m, name) for name in _MIXTURE_ARRAYS}
    arrays |= {"origin": model.origin, "scale": model.scale, "inlier_proba": estimator.inlier_proba_}
    if model.basis is not None:
        arrays["basis"] = model.basis
    arrays["covariance"] = m.covariance.values
    if not m.shared:
        arrays["garbage_covariance"] = m.garbage_covariance.values
    params = estimator.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = None  # the state of a generator is no part of the model
    header = {
        "class": kind,
        "params": {name: _plain(value) for name, value in params.items()},
        "classes": [_plain(c) for c in estimator.classes_],
        "classes_dtype": np.asarray(estimator.classes_).dtype.str,
        "feature_names": [str(name) for name in getattr(estimator, "feature_names_in_", [])],
        "structure": m.covariance.structure,
        "n_total": m.covariance.n_total,
        "outside": [m.covariance.outside, m.garbage_covariance.outside],
        "center_variance": float(m.center_variance),
        "status": estimator.status_.name,
        "energy": float(estimator.energy_),
        "n_iter": int(estimator.n_iter_),
        "starts": [{k: _plain(v) for k, v in start.items()} for start in estimator.starts_],
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(value) for name, value in arrays.items()})
    body, text = buffer.getvalue(), json.dumps(header, sort_keys=True).encode()
    seal = {
        "format": _FORMAT,
        "version": _VERSION,
        "sha256": hashlib.sha256(text + body).hexdigest(),
    }
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("seal.json", json.dumps(seal))
            archive.writestr("header.json", text)
            archive.writestr("arrays.npz", body)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def load(path: str | os.PathLike[str]) -> SelectionClassifier:
    """Read a classifier that :func:`save` wrote; anything else is refused with a clear error."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {part: archive.read(part) for part in ("seal.json", "header.json", "arrays.npz")}
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a directory, not a model file") from None
    except (zipfile.BadZipFile, KeyError, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{name} is not an outlearn model file, or is damaged ({error})") from None
    try:
        seal = json.loads(parts["seal.json"])
        kind, version, digest = seal["format"], seal["version"], seal["sha256"]
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{name} is not an outlearn model file: its seal cannot be read") from None
    if kind != _FORMAT:
        raise DataError(f"{name} is not an outlearn model file but {kind!r}")
    if version != _VERSION:
        raise DataError(f"{name} has format version {version}; this outlearn reads version {_VERSION}")
    if hashlib.sha256(parts["header.json"] + parts["arrays.npz"]).hexdigest() != digest:
        raise DataError(f"{name} was changed or damaged after it was written: its checksum does not match")
    try:
        header = json.loads(parts["header.json"])
        with np.load(io.BytesIO(parts["arrays.npz"]), allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        return _rebuild(header, arrays)
    except (ValueError, KeyError, TypeError, IndexError, np.linalg.LinAlgError) as error:
        raise DataError(f"{name} does not describe a model: {error}") from None


def _rebuild(header: dict[str, Any], arrays: dict[str, Any]) -> SelectionClassifier:
    allowed = _allowed()
    if header["class"] not in allowed:
        raise ValueError(f"class {header['class']!r} is not one of {', '.join(sorted(allowed))}")
    estimator = allowed[header["class"]](**header["params"])
    estimator._check_parameters()
    n = int(header["n_total"])
    for name in ("origin", "scale"):
        if arrays[name].shape != (n,):
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {(n,)}")
    for name, value in arrays.items():
        if value.dtype != np.float64 or not np.isfinite(value).all():
            raise ValueError(f"{name} holds something other than finite numbers")
    clouds = [
        Covariance(structure=header["structure"], values=arrays[key], n_total=n, outside=float(outside))
        for key, outside in zip(("covariance", "garbage_covariance"), header["outside"], strict=True)
        if key in arrays
    ]
    mixture = Mixture(
        **{name: arrays[name] for name in _MIXTURE_ARRAYS},
        covariance=clouds[0],
        garbage_covariance=clouds[-1],
        center_variance=float(header["center_variance"]),
    )
    estimator.model_ = FittedMixture(
        mixture=mixture, origin=arrays["origin"], scale=arrays["scale"], basis=arrays.get("basis")
    )
    estimator.classes_ = np.array(header["classes"], dtype=header["classes_dtype"])
    if mixture.means.shape[0] != len(estimator.classes_):
        raise ValueError("the number of classes does not match the centres")
    estimator.n_features_in_ = n
    if header["feature_names"]:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    estimator.inlier_proba_ = arrays["inlier_proba"]
    estimator.covariance_structure_ = header["structure"]
    estimator.status_ = FitStatus[header["status"]]
    estimator.energy_, estimator.n_iter_ = float(header["energy"]), int(header["n_iter"])
    estimator.starts_ = tuple(header["starts"])
    estimator.selection_ = None
    estimator._describe()
    return estimator


def _allowed() -> dict[str, type[SelectionClassifier]]:
    from outlearn import estimators

    return {
        name: value
        for name, value in vars(estimators).items()
        if isinstance(value, type)
        and issubclass(value, SelectionClassifier)
        and value is not SelectionClassifier
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise DataError(f"{value!r} cannot be kept in a model file")
