"""`python -m neuron_tools SCRIPT [ARGUMENT...]`: runs a script on the simulated device, without a profile.

AWS's module names (`torch_neuronx`, `nki`, ...) are importable in it where the real packages are absent.
"""

from __future__ import annotations

import os
import runpy
import sys

USAGE = "usage: python -m neuron_tools SCRIPT [ARGUMENT...] | -m MODULE [ARGUMENT...]"


def main(arguments: list[str]) -> int:
    """Run the script or module named by the arguments as Python itself would.

    Returns:
        2 where nothing is named; otherwise the script ends the process as it likes, or 0.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"{USAGE}\n\n{__doc__}")
        return 0
    as_module = arguments[:1] == ["-m"]
    rest = arguments[1:] if as_module else arguments
    if not rest or (rest[0].startswith("-") and not as_module):
        print(USAGE, file=sys.stderr)
        return 2
    if not as_module and not os.path.exists(rest[0]):
        print(f"python -m neuron_tools: there is no script {rest[0]}.", file=sys.stderr)
        return 2
    from neuron_tools import compat

    compat.install()
    sys.argv = rest
    if as_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        # Python puts the script's folder, not the working one, first on the path.
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
