"""What AWS's `neuron-explorer` takes, as our own commands take it.

Its commands and flags are those of the documentation of SDK 2.32. A flag that has no meaning on a simulated
device is left out, and a note says so; one that asks for what there is not is refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen

SCHEMA_FLAG = "--show-profile-schema"
SESSION = "profile.ntff"
_ANY = ""


@frozen
class _Flag:
    """A flag of AWS's tool.

    Attributes:
        takes_value: Whether a value follows.
        becomes: What it is here; "" = it changes nothing.
        only: The value for which that holds; "" = any.
        refused: What to do instead, where it is refused.
    """

    takes_value: bool = False
    becomes: str = ""
    only: str = _ANY
    refused: str = ""


@frozen
class Translated:
    """Arguments of `neuron-profile`, and what of the given ones changes nothing here."""

    arguments: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def _flags(names: str, flag: _Flag) -> dict[str, _Flag]:
    return dict.fromkeys(names.split(), flag)


_VALUES = "the kernel's values are computed where it is called: compare them there."
_RANKS = "capture a job of several ranks with: neuron-explorer capture --ranks N -- torchrun train.py."
_CAPTURE: Mapping[str, _Flag] = {
    **_flags("--enable-dge-notifs --ignore-exec-errors --single-io", _Flag()),
    **_flags("--exec-mode --single-io-threshold", _Flag(True)),
    **_flags(
        "-t --capture-type",
        _Flag(True, only="profile", refused="record a runtime with: neuron-explorer inspect COMMAND."),
    ),
    **_flags("--disable-profile", _Flag(refused="run the program itself: python -m neuron_tools SCRIPT.")),
    **_flags("--save-output --save-output-npy --check-output-determinism", _Flag(refused=_VALUES)),
    **_flags("--save-nth-output --write-tensors-per-exec --io-from", _Flag(True, refused=_VALUES)),
    **_flags("-r --collectives-workers-per-node --collectives-worker-count", _Flag(True, refused=_RANKS)),
    **_flags("--collectives-worker-start-id -i --collectives-profile-id -m --multi-input",
             _Flag(True, refused=_RANKS)),
    **_flags("--systrace-get-event-types", _Flag(refused="the table SystemProfileEvents has the events.")),
    **_flags("--systrace-event-filter", _Flag(True)),
}  # fmt: skip
_VIEW: Mapping[str, _Flag] = {
    **_flags("-d --session-dir", _Flag(True, becomes="PROFILE")),
    **_flags("--disable-ui", _Flag(becomes="--no-browser")),
    **_flags("--ingest-only", _Flag(becomes="--output-format parquet")),
    **_flags("--ignore-device-profile --ignore-system-profile --enable-memory-tracker --show-perfetto-flows",
             _Flag()),
    **_flags("--display-name --data-path --framework-source-root --nki-source-root -F", _Flag(True)),
    **_flags("--system-trace-filter-neuron-core --system-trace-filter-event-type", _Flag(True)),
    **_flags("--system-trace-filter-instance-id --system-trace-primary-group", _Flag(True)),
    **_flags("--system-trace-secondary-group --db-endpoint --db-org --db-bucket", _Flag(True)),
}  # fmt: skip
_RECOMMEND: Mapping[str, _Flag] = _flags("--nki-source-root", _Flag(True))
_INSPECT: Mapping[str, _Flag] = {
    **_flags("-n", _Flag(True)),
    **_flags("--capture-system-profiles --capture-device-profiles", _Flag()),
}


def translated(command: str, arguments: Sequence[str]) -> Translated:
    """The arguments of one of AWS's commands as `neuron-profile` takes them.

    Args:
        command: "capture", "view", "recommend" or "inspect".

    Raises:
        UsageError: A flag asks for what a simulated device does not have.
    """
    if command == "recommend":
        found = _replaced(arguments, _RECOMMEND)
        return Translated(("advise", "--markdown", *found.arguments), found.ignored)
    if command == "inspect":
        return _inspect(arguments)
    if command == "view":
        if SCHEMA_FLAG in arguments:
            return Translated(("show-schema", "--format", "openapi"))
        found = _replaced(arguments, _VIEW)
        return Translated(("view", *found.arguments), found.ignored)
    found = _replaced(arguments, _CAPTURE)
    return _capture(found)


def _capture(found: Translated) -> Translated:
    """An artifact is executed with inputs of zeros, whatever tensors are named, into AWS's own file name."""
    given = list(found.arguments)
    if not {"-n", "--neff"} & set(given) or "--" in given:
        return Translated(("capture", *given), found.ignored)
    flags, inputs = _without_inputs(given)
    session = [] if {"-s", "--session-file", "-o", "--output"} & set(flags) else ["-s", SESSION]
    ignored = (*found.ignored, "the input tensors") if inputs else found.ignored
    return Translated(("capture", *flags, *session), ignored)


def _without_inputs(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Flags with their values, and what stands behind them: all flags that are left take a value."""
    flags: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        taken = 1 if "=" in rest[0] else 2
        flags += rest[:taken]
        del rest[:taken]
    return flags, rest


def _inspect(arguments: Sequence[str]) -> Translated:
    """A command is captured; into a folder of the output folder where that is there already."""
    place: Path | None = None
    rest = list(arguments)
    ignored: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] != "--":
        name = rest.pop(0)
        if name == "-o" and rest:
            place = Path(rest.pop(0))
        elif name in _INSPECT:
            ignored.append(name)
            del rest[: int(_INSPECT[name].takes_value)]
        else:
            raise UsageError(f"inspect knows no {name}: write neuron-explorer inspect [-o DIR] COMMAND.")
    command = rest[1:] if rest[:1] == ["--"] else rest
    output = [] if place is None else ["-o", str(place / "profile.nprof" if place.is_dir() else place)]
    return Translated(("capture", *output, "--", *command), tuple(ignored))


def _replaced(arguments: Sequence[str], flags: Mapping[str, _Flag]) -> Translated:
    """Arguments with AWS's flags replaced; what stands behind `--` is a command, and stays as it is."""
    kept: list[str] = []
    ignored: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return Translated((*kept, "--", *rest), tuple(ignored))
        name, equals, value = argument.partition("=")
        flag = flags.get(name)
        if flag is None:
            kept.append(argument)
            continue
        if flag.takes_value and not equals:
            value = rest.pop(0) if rest else ""
        if flag.refused and not (flag.only and value == flag.only):
            raise UsageError(f"{argument} is not there for a simulated device; {flag.refused}")
        if not flag.becomes:
            ignored.append(name)
        kept += [value] if flag.becomes == "PROFILE" else flag.becomes.split()
    return Translated(tuple(kept), tuple(ignored))
