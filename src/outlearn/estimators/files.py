"""Model files: plain arrays and a JSON header in a zip, no pickle, so that loading runs no code."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from outlearn.estimators.auto import AutoSelectionClassifier
from outlearn.estimators.base import SelectionClassifier
from outlearn.estimators.members import Member, MemberScore, MemberTable
from outlearn.estimators.units import Units
from outlearn.exceptions import DataError
from outlearn.inference.covariance import Covariance
from outlearn.inference.mixture import Mixture
from outlearn.inference.pooling import Calibration
from outlearn.inference.posterior import FittedMixture
from outlearn.inference.results import FitStatus

__all__ = ["load", "save"]

_FORMAT = "outlearn-model"
_VERSION = 1
# what readers of zip and JSON raise on bytes that are not theirs (RuntimeError: encrypted, nested too deeply)
_DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError)
_NOT_A_MODEL = (TypeError, IndexError, AttributeError, np.linalg.LinAlgError)
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
    header, arrays = _pack(estimator)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(value) for name, value in arrays.items()})
    body, text = buffer.getvalue(), json.dumps(header, sort_keys=True).encode()
    seal = {
        "format": _FORMAT,
        "version": _VERSION,
        "sha256": hashlib.sha256(text + body).hexdigest(),
    }
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("seal.json", json.dumps(seal))
            archive.writestr("header.json", text)
            archive.writestr("arrays.npz", body)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _pack(estimator: SelectionClassifier) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a classifier is made of: a header for JSON, and arrays."""
    kind = type(estimator).__name__
    if kind not in _allowed() or type(estimator) is not _allowed()[kind]:
        raise DataError(f"{kind} cannot be saved: only {', '.join(sorted(_allowed()))}")
    if isinstance(estimator, AutoSelectionClassifier) and hasattr(estimator, "pool_"):
        return _pack_pool(estimator)
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
    params = _portable(estimator)
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
    return header, arrays


def _pack_pool(estimator: AutoSelectionClassifier) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pooled classifier: its own arrays, and every member's under its number."""
    params = {name: _plain(value) for name, value in _portable(estimator).items() if name != "members"}
    arrays: dict[str, Any] = {
        name: getattr(estimator, name) for name in ("coef_", "intercept_", "weights_", "inlier_proba_")
    }
    arrays |= {"center": estimator.units_.center, "scale": estimator.units_.scale}
    members = []
    for i, (member, c) in enumerate(zip(estimator.pool_, estimator.calibrations_, strict=True)):
        arrays |= {f"{i}/coef_": member.coef, f"{i}/intercept_": member.intercept}
        entry: dict[str, Any] = {
            "name": member.name,
            "contamination": float(member.contamination),
            "detail": member.detail,
            "n_iter": int(member.n_iter),
            "slope": float(c.slope),
            "offset": np.asarray(c.offset).tolist(),
            "coins": float(c.contamination),
            "coin": np.asarray(c.coin).tolist(),
            "selector": None,
        }
        if member.selector is not None:
            entry["selector"], own = _pack(member.selector)
            arrays |= {f"{i}/selector/{key}": value for key, value in own.items()}
        members.append(entry)
    return {
        "class": type(estimator).__name__,
        "params": params | {"members": list(estimator.members)},
        "classes": [_plain(c) for c in estimator.classes_],
        "classes_dtype": np.asarray(estimator.classes_).dtype.str,
        "feature_names": [str(name) for name in getattr(estimator, "feature_names_in_", [])],
        "count": float(estimator.count_),
        "label_contamination": float(estimator.label_contamination_),
        "reason": estimator.reason_,
        "table": [
            {key: None if value != value else value for key, value in row.to_dict().items()}
            for row in estimator.members_.rows
        ],
        "members": members,
    }, arrays


def _portable(estimator: SelectionClassifier) -> dict[str, Any]:
    """Parameters without the state of a generator, which is no part of the model."""
    params = estimator.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = None
    return params


def _rebuild_pool(header: dict[str, Any], arrays: dict[str, Any]) -> AutoSelectionClassifier:
    settings = header["params"] | {"members": tuple(header["params"]["members"])}
    estimator = AutoSelectionClassifier(**settings)
    estimator._check_parameters()
    for name, value in arrays.items():
        if value.dtype != np.float64 or not np.isfinite(value).all():
            raise ValueError(f"{name} holds something other than finite numbers")
    estimator.classes_ = np.array(header["classes"], dtype=header["classes_dtype"])
    k, n = len(estimator.classes_), len(arrays["scale"])
    shape = (1 if k == 2 else k, n)
    for name in [key for key in arrays if key.split("/")[-1] == "coef_"]:
        if arrays[name].shape != shape or arrays[name[: -len("coef_")] + "intercept_"].shape != shape[:1]:
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {shape}")
    if arrays["center"].shape != (n,) or arrays["weights_"].shape != (len(header["members"]),):
        raise ValueError("units or weights do not match the members")
    pool, calibrations = [], []
    for i, entry in enumerate(header["members"]):
        selector = None
        if entry["selector"] is not None:
            if entry["selector"]["class"] == header["class"]:
                raise ValueError("a pool within a pool")
            start = f"{i}/selector/"
            own = {key[len(start) :]: value for key, value in arrays.items() if key.startswith(start)}
            selector = _rebuild(entry["selector"], own)
        pool.append(
            Member(
                name=entry["name"],
                coef=arrays[f"{i}/coef_"],
                intercept=arrays[f"{i}/intercept_"],
                contamination=float(entry["contamination"]),
                detail=entry["detail"],
                n_iter=int(entry["n_iter"]),
                selector=selector,
            )
        )
        calibrations.append(
            Calibration(
                slope=float(entry["slope"]),
                offset=np.array(entry["offset"], dtype=np.float64).reshape(shape[0]),
                contamination=float(entry["coins"]),
                coin=np.array(entry["coin"], dtype=np.float64).reshape(k),
                log_proba=np.zeros(0),
            )
        )
    rows: list[dict[str, Any]] = [
        {key: np.nan if value is None else value for key, value in row.items()} for row in header["table"]
    ]
    estimator.pool_, estimator.calibrations_ = tuple(pool), tuple(calibrations)
    estimator.units_ = Units(center=arrays["center"], scale=arrays["scale"])
    for name in ("coef_", "intercept_", "weights_", "inlier_proba_"):
        setattr(estimator, name, arrays[name])
    estimator.n_features_in_ = n
    if header["feature_names"]:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    estimator.count_ = float(header["count"])
    estimator.label_contamination_ = float(header["label_contamination"])
    estimator.reason_ = header["reason"]
    estimator._rank(MemberTable(rows=tuple(MemberScore(**row) for row in rows)))
    return estimator


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
    except (*_DAMAGE, OSError, EOFError) as error:
        raise DataError(f"{name} is not an outlearn model file, or is damaged ({error})") from None
    try:
        seal = json.loads(parts["seal.json"])
        kind, version, digest = seal["format"], seal["version"], seal["sha256"]
    except (*_DAMAGE, TypeError):
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
    except (*_DAMAGE, *_NOT_A_MODEL) as error:
        raise DataError(f"{name} does not describe a model: {error}") from None


def _rebuild(header: dict[str, Any], arrays: dict[str, Any]) -> SelectionClassifier:
    allowed = _allowed()
    if header["class"] not in allowed:
        raise ValueError(f"class {header['class']!r} is not one of {', '.join(sorted(allowed))}")
    if header["class"] == AutoSelectionClassifier.__name__:
        return _rebuild_pool(header, arrays)
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
