"""`python -m neuron_tools SCRIPT [ARGUMENT...]`: runs a script on the simulated device, without a profile.

The device keeps simulated time (of TARGET, trn2 by default): events, torch.profiler and the simulated
driver's counters tell it. AWS's module names (`torch_neuronx`, `nki`, ...) are importable where the real
packages are absent, in processes that the script starts too (`-m torch.distributed.run`).
"""

from __future__ import annotations

import os
import runpy
import sys

USAGE = "usage: python -m neuron_tools [--target TARGET] SCRIPT [ARGUMENT...] | -m MODULE [ARGUMENT...]"
TIMED_VARIABLE, DEFAULT_TARGET = "NEURON_TOOLS_TIMED", "trn2"


def main(arguments: list[str]) -> int:
    """Run the script or module named by the arguments as Python itself would.

    Returns:
        2 where nothing is named; otherwise the script ends the process as it likes, or 0.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"{USAGE}\n\n{__doc__}")
        return 0
    if arguments[:1] == ["--target"] and len(arguments) > 1:
        os.environ[TIMED_VARIABLE] = arguments[1]
        arguments = arguments[2:]
    as_module = arguments[:1] == ["-m"]
    rest = arguments[1:] if as_module else arguments
    if not rest or (rest[0].startswith("-") and not as_module):
        print(USAGE, file=sys.stderr)
        return 2
    problem = "" if as_module else _unknown_script(rest[0])
    problem = problem or _unknown_target(os.environ.setdefault(TIMED_VARIABLE, DEFAULT_TARGET))
    if problem:
        print(f"python -m neuron_tools: {problem}", file=sys.stderr)
        return 2
    from neuron_tools import compat
    from neuron_tools.compat.commands import command_path

    compat.install()
    os.environ["PYTHONPATH"], os.environ["PATH"] = compat.python_path(), command_path()
    sys.argv = rest
    return _run(rest[0], as_module=as_module)


def _run(program: str, *, as_module: bool) -> int:
    """Run a script or module; what it raises is told as Python itself would, from its own first frame on."""
    try:
        if as_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            # Python puts the script's folder, not the working one, first on the path.
            sys.path[0] = os.path.dirname(os.path.abspath(program))
            runpy.run_path(program, run_name="__main__")
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals in (globals(), vars(runpy)):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _unknown_script(path: str) -> str:
    if not os.path.exists(path):
        return f"there is no script {path}."
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "__main__.py")):
        return f"{path} is a folder without __main__.py: name a script."
    return ""


def _unknown_target(target: str) -> str:
    from neuron_tools import hardware
    from neuron_tools.errors import NeuronToolsError

    try:
        hardware.get(target)
    except NeuronToolsError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
