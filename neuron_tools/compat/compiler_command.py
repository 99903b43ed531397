"""The command `neuronx-cc compile`, found by programs that run here where AWS's compiler is absent.

It takes a serialized HLO module, as frameworks hand it to AWS's compiler, and writes the artifact that
`neuron-profile capture -n` times.
"""

from __future__ import annotations

import sys
from pathlib import Path

from neuron_tools import hardware
from neuron_tools.compat.commands import NAME
from neuron_tools.compiler.flags import CompilerFlags, parse_flags
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.version import installed_version

USAGE = f"usage: {NAME} compile MODULE.pb --target TARGET --output FILE.neff [OPTION...]"
_OUTPUT, _OUTPUTS = "file.neff", ("--output", "-o")


def main(arguments: list[str]) -> int:
    """Compile what the arguments name.

    Returns:
        0, or 2 where nothing is named; as AWS's command, 1 for an error.
    """
    if "--help" in arguments or "-h" in arguments:
        print(USAGE)
        return 0
    if arguments[:1] == ["--version"]:
        print(f"{NAME} of Neuron Tools {installed_version()}")
        return 0
    if arguments[:1] != ["compile"] or len(arguments) < 2:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        flags = parse_flags(arguments[1:], with_environment=True)
        _compile(_module_file(arguments[1:]), _output(arguments[1:]), flags)
    except (NeuronToolsError, OSError) as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 1
    return 0


def _module_file(words: list[str]) -> Path:
    """The first word that is a file, but for the output: values of other options are none."""
    output = _output(words)
    found = next((file for word in words if (file := Path(word)).is_file() and file != output), None)
    if found is None:
        raise UsageError(f"none of '{' '.join(words)}' is a file to read: name the HLO module to compile.")
    return found


def _output(words: list[str]) -> Path:
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _OUTPUTS:
            return Path(value if equals else "".join(words[place + 1 : place + 2]) or _OUTPUT)
    return Path(_OUTPUT)


def _compile(file: Path, output: Path, flags: CompilerFlags) -> None:
    from neuron_tools.compiler.compile import compile_logical
    from neuron_tools.frontends.jax.hlo_file import HloFileError, read_hlo
    from neuron_tools.neff import Neff, write_neff
    from neuron_tools.nki.target import target_name

    core = hardware.get(flags.target or target_name(), lnc=flags.lnc or None)
    try:
        module = read_hlo(file.read_bytes())
    except HloFileError as error:
        raise UsageError(f"{file}: {error}") from error
    write_neff(Neff(compile_logical(module, core, flags.options)), output)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
