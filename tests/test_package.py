"""The public face of the package: every name resolves, and touching it costs little."""

import subprocess
import sys

import pytest

import outlearn


@pytest.mark.parametrize("name", outlearn.__all__)
def test_every_public_name_is_there(name):
    assert getattr(outlearn, name) is not None
    assert name in dir(outlearn)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        outlearn.nonsense  # noqa: B018


def test_importing_the_package_loads_no_heavy_room():
    code = (
        "import sys, outlearn; heavy = {'numba', 'sklearn', 'pandas', 'matplotlib', 'typer', 'scipy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
