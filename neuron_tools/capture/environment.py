"""The environment that makes a command, and everything it starts, record itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from neuron_tools import compat
from neuron_tools.capture.options import VARIABLE, CaptureOptions
from neuron_tools.compat.commands import command_path
from neuron_tools.device.distributed.job import VALUES_VARIABLE
from neuron_tools.hardware import CORES_VARIABLE, LNC_VARIABLE, instance_cores


def child_environment(options: CaptureOptions, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables to put on top of `environment` for the captured command.

    Any Python in it that imports torch finds the recorder through torch's own back-end autoload, so no
    file of the user's is touched; each process writes its own folder below `options.log_directory`.
    """
    cores = instance_cores(options.target, options.lnc)
    return {
        VARIABLE: options.to_json(),
        LNC_VARIABLE: str(options.lnc),
        CORES_VARIABLE: "" if cores is None else str(cores),
        VALUES_VARIABLE: options.values,
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
        "PYTHONPATH": compat.python_path(environment),
        "PATH": command_path(environment),
    }
