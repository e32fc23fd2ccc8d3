"""Every figure from one call: runs are kept and resumed, files are written, a page is made of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import matplotlib

from outlearn.exceptions import DataError, ParameterError
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import RC

__all__ = ["PLATES", "make", "names"]

# name on the command line: module
PLATES: dict[str, str] = {
    "1": "fig1_learning_hebb",
    "2": "fig2_learning_curves",
    "3": "fig3_relief",
    "4": "fig4_soft_transition",
    "5": "fig5_critical",
    "6": "fig6_hard_transition",
    "7": "fig7_infinite_alpha",
    "8": "fig8_phases",
    "9": "fig9_detection",
    "10": "fig10_losses",
    "large": "large",
}


def names(wanted: Sequence[str]) -> list[str]:
    """Read which figures are wanted; "all" is every one.

    >>> names(["4", "1", "4"]), len(names(["all"]))
    (['4', '1'], 11)
    """
    if not wanted:
        raise ParameterError("figure", wanted, f"all, {', '.join(PLATES)}")
    out: list[str] = []
    for name in wanted:
        if name != "all" and name not in PLATES:
            raise ParameterError("figure", name, f"all, {', '.join(PLATES)}")
        out += list(PLATES) if name == "all" else [name]
    return list(dict.fromkeys(out))


def make(
    wanted: Sequence[str],
    setting: Setting,
    folder: str | PathLike[str],
    *,
    started: Callable[[str], None] | None = None,
    finished: Callable[[Plate, float, list[Path]], None] | None = None,
) -> list[Plate]:
    """Make figures and write their files into ``folder``; runs are kept there too, in runs.sqlite."""
    several, place = names(wanted), Path(folder)
    if place.exists() and not place.is_dir():
        raise DataError(f"{place}: is not a directory")
    place.mkdir(parents=True, exist_ok=True)
    here = replace(setting, store=setting.store or place / "runs.sqlite")
    plates = []
    for name in several:
        if started is not None:
            started(name)
        begin = time.monotonic()
        with matplotlib.rc_context(RC):
            plate: Plate = importlib.import_module(f"outlearn.figures.{PLATES[name]}").draw(here)
            seconds = time.monotonic() - begin
            paths = plate.save(place, size=setting.size, seconds=seconds)
        if finished is not None:
            finished(plate, seconds, paths)
        plates.append(plate)
    return plates
