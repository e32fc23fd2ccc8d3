"""The command line: parses, calls the library, prints.

One module per command: ``outlearn.cli.<name>`` holds a function of that name (typer reads its signature
and docstring) or, for a command with subcommands, a ``typer.Typer`` called ``app``. A module is imported
only when its command runs or its help is asked for; heavy imports belong inside the functions, so that
``outlearn --help`` answers at once. Commands raise; :func:`main` turns errors into one line and an exit
code:

====  =====================================================================
0     done
1     the computation did not succeed (no convergence, out of memory)
2     bad input or usage: arguments, files, data, parameters
130   interrupted
====  =====================================================================
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from inspect import getdoc  # "inspect" itself is the name of a command module here
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from outlearn.exceptions import DataError, OutlearnError, ParameterError

__all__ = ["COMMANDS", "main"]

# What each command does, in the order of the help page. Those whose module is not there are not registered.
COMMANDS: dict[str, str] = {
    "demo": "Learn from data that are 80 % garbage, and draw what was found.",
    "fit": "Learn a classifier from contaminated data and save it.",
    "predict": "Classify the rows of a table with a saved model.",
    "inspect": "Rank the examples of a table by how doubtful their labels are.",
    "diagnose": "How much of the data is garbage, and what error to expect.",
    "plan": "How many examples a target error needs, and what cleaning labels would buy.",
    "report": "Write a self-contained HTML report about a labelled table.",
    "solve": "Solve the theory at one point: order parameters, errors, stability.",
    "sweep": "Compute a phase diagram and write it as CSV and as a picture.",
    "simulate": "Run finite-size campaigns, resumable.",
    "results": "List, export and check the results of campaigns.",
    "reproduce": "Rebuild the figures of the paper, and ours.",
}

_INTERRUPTED = 130
_EXTRAS = {"matplotlib": "plot", "dask": "scale", "distributed": "scale", "pyarrow": "parquet"}


class _LazyGroup(TyperGroup):
    """A group that knows names and summaries, and imports a command when it is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, summary in COMMANDS.items():
            if importlib.util.find_spec(f"{__name__}.{name}") is not None:
                self.add_command(TyperCommand(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name), rest


def _load(name: str) -> Any:
    module = importlib.import_module(f"{__name__}.{name}")
    app = getattr(module, "app", None)
    if not isinstance(app, typer.Typer):
        function = getattr(module, name)
        app = typer.Typer(add_completion=False)
        app.command(name, help=_flowing(getdoc(function) or COMMANDS[name]))(function)
    command = typer.main.get_command(app)
    command.name = name
    return command


def _flowing(text: str) -> str:
    """Let paragraphs flow to the width of the screen; those that begin with a backspace stay as they are.

    >>> _flowing("One\\ntwo.\\n\\n\\b\\nkept\\nlines")
    'One two.\\n\\n\\x08\\nkept\\nlines'
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith("\b") else p.replace("\n", " ") for p in paragraphs)


def _print_version(asked: bool) -> None:
    if asked:
        from outlearn import __version__

        typer.echo(f"outlearn {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="outlearn",
    cls=_LazyGroup,
    help="Learning in the presence of outliers: classifiers that select the informative examples of data "
    "that are half or nine tenths garbage, and the theory that predicts their error.",
    epilog="Example: outlearn fit data.csv --label y -o model",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _outlearn(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; an error is one line on stderr.

    ``OUTLEARN_TRACEBACK=1`` in the environment shows the traceback as well.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            code = typer.main.get_command(app)(arguments, prog_name="outlearn", standalone_mode=False)
            if code == _INTERRUPTED:  # the toolkit turns Ctrl-C into this code, silently
                raise KeyboardInterrupt
            sys.stdout.flush()
        except SystemExit as stop:
            code = _say(stop.code, 1) if isinstance(stop.code, str) else stop.code
        except BaseException as error:
            if os.environ.get("OUTLEARN_TRACEBACK"):
                import traceback

                traceback.print_exc()
            code = _report(error)
    return code if isinstance(code, int) else 0


def _report(error: BaseException) -> int:
    """Say in one line what went wrong and return the exit code; what nobody expected is raised again."""
    match error:
        case KeyboardInterrupt() | typer.Abort():
            return _say("interrupted", _INTERRUPTED)
        case typer.TyperException():
            context = getattr(error, "ctx", None)
            where = context.command_path if context is not None else "outlearn"
            return _say(f"{error.format_message().rstrip('.')} (see {where} --help)", 2)
        case BrokenPipeError():
            _silence()
            return 1
        case DataError() | ParameterError():
            return _say(str(error), 2)
        case OutlearnError():
            return _say(str(error), 1)
        case MemoryError():
            return _say(f"not enough memory. {error}", 1)
        case OSError() if error.filename is not None and error.strerror is not None:
            return _say(f"{os.fsdecode(error.filename)}: {error.strerror}", 2)
        case OSError() | ValueError():
            return _say(str(error) or type(error).__name__, 2)
        case ModuleNotFoundError() if error.name in _EXTRAS:
            return _say(f"{error.name} is missing; pip install 'outlearn[{_EXTRAS[error.name]}]'", 1)
        case _:
            raise error


def _say(message: str, code: int) -> int:
    print("outlearn:", " ".join(message.split()), file=sys.stderr)
    return code


def _silence() -> None:
    """Let nothing more be written to a pipe whose reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Any, *_: Any) -> None:
    print("outlearn: warning:", " ".join(str(message).split()), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
