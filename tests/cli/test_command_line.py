"""The frame of the command line: help at once, one line per error, exit codes that mean something."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import typer

import outlearn
from outlearn import cli
from outlearn.exceptions import ConvergenceError, DataError, OutlearnError, ParameterError


@pytest.fixture
def command(monkeypatch):
    """Put a function in the place of a command."""

    def replace(function):
        app = typer.Typer(add_completion=False)
        app.command("fit")(function)
        monkeypatch.setattr(cli, "_load", lambda name: typer.main.get_command(app))

    return replace


def test_help_lists_the_commands_and_imports_none_of_them():
    code = (
        "import sys; from outlearn.cli import main; code = main(['--help']); "
        "heavy = {'numpy', 'sklearn', 'scipy', 'pandas', 'numba', 'matplotlib'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("fit", "predict", "inspect", "solve"):
        assert f" {name} " in done.stdout


def test_no_arguments_print_the_help(capsys):
    assert cli.main([]) == 0
    assert "Usage: outlearn" in capsys.readouterr().out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"outlearn {outlearn.__version__}\n"


@pytest.mark.parametrize(
    "name", [n for n in cli.COMMANDS if cli.importlib.util.find_spec(f"outlearn.cli.{n}")]
)
def test_every_command_has_help_with_an_example(name, capsys):
    assert cli.main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"outlearn {name}" in out.replace(f"Usage: outlearn {name}", "", 1), "no example"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["foo"], "No such command 'foo'"),
        (["fti"], "Did you mean 'fit'?"),
        (["--bar"], "No such option: --bar"),
        (["solve", "--alpha", "x"], "Invalid value for '--alpha'"),
        (["fit", "data.csv"], "Missing option '--label'"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(arguments, message, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert "--help)" in err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataError("data.csv: empty"), 2, "data.csv: empty"),
        (ParameterError("eta", 9, "eta < 1"), 2, "eta = 9 is not permitted: eta < 1"),
        (ValueError("two\nlines"), 2, "two lines"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 2, "x.csv: No such file or directory"),
        (OSError("disk on fire"), 2, "disk on fire"),
        (ConvergenceError("did not settle"), 1, "did not settle"),
        (OutlearnError("no"), 1, "no"),
        (MemoryError("8 GB"), 1, "not enough memory. 8 GB"),
        (
            ModuleNotFoundError("no dask", name="dask"),
            1,
            "dask is missing; pip install 'outlearn[scale]'",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_become_one_line_and_a_code(command, error, code, line, capsys):
    def fails() -> None:
        raise error

    command(fails)
    found = cli.main(["fit"])
    out, err = capsys.readouterr()
    assert (found, out) == (code, "")
    assert err == f"outlearn: {line}\n"


def test_what_nobody_expected_keeps_its_traceback(command):
    def broken() -> None:
        raise ZeroDivisionError

    command(broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["fit"])


def test_a_missing_module_of_our_own_is_a_bug_not_an_extra(command):
    def broken() -> None:
        raise ModuleNotFoundError("no x", name="x")

    command(broken)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["fit"])


def test_warnings_are_one_line(command, capsys):
    def warns() -> None:
        warnings.simplefilter("always")
        warnings.warn("look\nhere", UserWarning, stacklevel=1)

    command(warns)
    assert cli.main(["fit"]) == 0
    assert capsys.readouterr().err == "outlearn: warning: look here\n"


def test_traceback_on_request(command, capsys, monkeypatch):
    def fails() -> None:
        raise DataError("bad")

    monkeypatch.setenv("OUTLEARN_TRACEBACK", "1")
    command(fails)
    assert cli.main(["fit"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error():
    code = (
        "import sys, typer; from outlearn import cli; app = typer.Typer(add_completion=False)\n"
        "@app.command('fit')\n"
        "def talk():\n    for _ in range(100000): print('x' * 50)\n"
        "cli._load = lambda name: typer.main.get_command(app)\n"
        "sys.exit(cli.main(['fit']))"
    )
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.read(running.stdout.fileno(), 10)
    running.stdout.close()
    with running.stderr:
        assert running.stderr.read() == b""
    assert running.wait() == 1
