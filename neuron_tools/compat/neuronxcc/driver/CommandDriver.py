"""`neuronxcc.driver.CommandDriver`: the compiler command as a function, which reads `sys.argv`."""

import sys as _sys

from neuron_tools.compat.absent import names_of
from neuron_tools.compat.compiler_command import main as _main


def main() -> None:
    """Run the command.

    Raises:
        SystemExit: It failed.
    """
    status = _main(_sys.argv[1:])
    if status:
        raise SystemExit(status)


__getattr__ = names_of(__name__, "use main(), or the command neuronx-cc.")
