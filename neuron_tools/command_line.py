"""What every command line of this distribution shares: standard options, examples, and its edge.

At the edge an error becomes one plain line on standard error and an exit status (1 failure, 2 wrong
usage); the traceback is printed only with `--debug`.
"""

from __future__ import annotations

import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from neuron_tools.version import installed_version

DEBUG_KEY = "neuron_tools.debug"
WHOLE_PROCESS_KEY = "neuron_tools.whole_process"
CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_NO_NUMBER = re.compile(r"is not a valid (?P<kind>integer|float) range")
_IS_NO = {"integer": "is no whole number", "float": "is no number"}
"""In place of click's words for what is no number at all."""
EXIT_INTERRUPTED = 130
EXIT_SIGNAL_BASE = 128


def standard_options(command: click.Command) -> click.Command:
    """Give a command `--version` and `--debug`."""
    for name, callback, text in (
        ("--version", _print_version, "Show the version and exit."),
        ("--debug", _remember_debug, "Show the traceback of an error."),
    ):
        command.params.append(
            click.Option(
                [name], is_flag=True, is_eager=True, expose_value=False, callback=callback, help=text
            )
        )
    return command


def command(*, example: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A click command with the standard options and an example below its help.

    Args:
        example: One or more command lines, shown as they stand.
        settings: Passed on to `click.command`.
    """
    settings.setdefault("context_settings", {}).update(CONTEXT_SETTINGS)

    epilog = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.splitlines())

    make: Callable[[Callable[..., Any]], click.Command] = click.command(epilog=epilog, **settings)

    def decorate(function: Callable[..., Any]) -> click.Command:
        return standard_options(make(function))

    return decorate


def choice_option(
    *names: str, choices: Sequence[str], default: str | None = None, help: str
) -> Callable[[Any], Any]:
    """An option that takes one of several words; the help shows which stands where none is given."""
    return click.option(*names, type=click.Choice(choices), default=default, show_default=True, help=help)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def timeout_option(default_s: float, text: str) -> Callable[[Any], Any]:
    """The option `--timeout SECONDS`, given as `timeout_s`; `text` is its help."""
    return click.option(
        "--timeout", "timeout_s", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True),
        default=default_s, show_default=True, help=text,
    )  # fmt: skip


class CommandFolder(click.Group):
    """A group whose subcommand NAME is `PACKAGE.NAME.NAME`, spelled as Python allows it; imported when used.

    Args:
        package: Where the subcommands' modules stand.
        names: The subcommands in the order in which a user meets them.
        settings: Passed on to `click.Group`.
    """

    def __init__(self, *, package: str, names: Sequence[str], **settings: Any) -> None:
        super().__init__(**settings)
        self._package = package
        self._names = names

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, as they were given."""
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand; None where there is none of that name."""
        if cmd_name not in self._names:
            return None
        name = cmd_name.replace("-", "_") + ("_" if iskeyword(cmd_name) else "")
        found: click.Command = getattr(import_module(f"{self._package}.{name}"), name)
        return found


def port_option(default: int, text: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `-p`, `--port` of a command that serves; `text` is its help."""
    return click.option(
        "-p", "--port", type=click.IntRange(0, 65535), default=default, show_default=True, help=text
    )


def run(
    command: click.Command, name: str, arguments: Sequence[str], *, is_whole_process: bool = False
) -> int:
    """Run a command and return its exit status; the only place that catches everything.

    Args:
        is_whole_process: Nothing else runs in this process, so that the command may take rights from it.
    """
    debug = False
    try:
        with command.make_context(
            name, list(arguments), obj={WHOLE_PROCESS_KEY: is_whole_process}
        ) as context:
            try:
                result = command.invoke(context)
            finally:
                debug = bool(context.meta.get(DEBUG_KEY))
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _leave_standard_output()
        return 1
    except Exception as error:
        if debug:
            traceback.print_exc()
        message, status = describe(error)
        click.echo(f"Error: {message}", err=True)
        return status


def is_whole_process() -> bool:
    """Whether the command that runs has this process for itself."""
    context = click.get_current_context(silent=True)
    return context is not None and bool((context.find_object(dict) or {}).get(WHOLE_PROCESS_KEY))


@contextmanager
def cleaning_up_when_terminated() -> Iterator[None]:
    """While this is entered, SIGTERM and SIGHUP end the command as an exception, which cleans up."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(EXIT_SIGNAL_BASE + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe(error: Exception) -> tuple[str, int]:
    """One line that tells an error, and the exit status that goes with it."""
    from neuron_tools.errors import NeuronToolsError
    from neuron_tools.extras import what_is_lacking

    if isinstance(error, click.ClickException):
        return _one_line(_usage_text(error)), error.exit_code
    if isinstance(error, NeuronToolsError):
        return _one_line(str(error)), error.exit_status
    if isinstance(error, ModuleNotFoundError) and (lacking := what_is_lacking(error)):
        return lacking, 1
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return _one_line(f"{where}{error.strerror}."), 1
    return _one_line(f"{type(error).__name__}: {error} (run again with --debug for the traceback)"), 1


def _usage_text(error: click.ClickException) -> str:
    text = _NO_NUMBER.sub(lambda found: _IS_NO[found["kind"]], error.format_message())
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text} See '{context.command_path} --help'."


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"{context.find_root().info_name} {installed_version()}")
        context.exit()


def _remember_debug(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[DEBUG_KEY] = True


def _leave_standard_output() -> None:
    """The reader of our output has gone: keep the interpreter from complaining when it flushes."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
