"""The calls of PyTorch modules that a source file takes part in, made again as the file reads now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

from neuron_profile.preview.overlay import load
from neuron_profile.preview.rehearse import Written
from neuron_tools.capture.assembler import Assembler
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.capture.session import CaptureSession
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# A module may be called by other names than its path; each call of the outermost one is one.
_CALLS = """
SELECT call.layer AS layer, any_value(call.call) AS text, greatest(count(span.start_ts), 1) AS times
FROM ModuleCall call LEFT JOIN HostSpan span ON span.kind = 'module' AND span.layer = call.layer
    AND span.process_idx = call.process_idx
GROUP BY call.layer, call.process_idx ORDER BY call.layer
"""
_BACKWARD = """
SELECT 1 FROM FrameworkInstruction WHERE is_backward AND (layer = $layer OR starts_with(layer, $layer || '/'))
LIMIT 1
"""


@frozen
class ModuleCall:
    """A call of a profile.

    Attributes:
        layer: Path of the module.
        text: Of `neuron_tools.frontends.torch_hooks.module_text`.
        times: How often the module was called.
        backward: Whether gradients were computed.
        scripts: Files of its classes that were run as a script.
    """

    layer: str
    text: str
    times: int
    backward: bool
    scripts: frozenset[str]


def module_calls_of(profile: Profile, file: str) -> tuple[ModuleCall, ...]:
    """The calls of modules of which some class stands in a file."""
    if not profile.tables().get("ModuleCall"):
        return ()
    return tuple(_of_rows(profile, file))


def _of_rows(profile: Profile, file: str) -> Iterator[ModuleCall]:
    for row in profile.query(_CALLS).to_pylist():
        classes = list(_classes(json.loads(row["text"])["module"]))
        if any(path == file for _, _, path in classes):
            scripts = frozenset(path for module, _, path in classes if module == "__main__")
            backward = bool(profile.query(_BACKWARD, {"layer": row["layer"]}).num_rows)
            yield ModuleCall(row["layer"], row["text"], int(row["times"]), backward, scripts)


def _classes(module: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    name, qualified_name, path = module["class"]
    yield name, qualified_name, path
    for child in module["children"].values():
        if child is not None:
            yield from _classes(child)


def run_again(call: ModuleCall, options: CaptureOptions) -> Written:
    """Run a module once on the simulated device, and back where that was done, into a profile.

    Values are zeros; only their shapes and types are those of the capture.

    Raises:
        Exception: Whatever the edited module raises.
    """
    import torch

    from neuron_tools.capture.runtimes.torch_runtime import TorchRuntime
    from neuron_tools.frontends.torch_hooks.module_text import RecordedCall

    own = replace(options, directory=options.directory / f"module{call.layer.replace('/', '.')}.nprof")
    recorded = RecordedCall(call.text, _class_of)
    assembler, session = Assembler(own, ()), CaptureSession(own, TorchRuntime())
    session.start()
    try:
        result = recorded.run()
        results = [each for each in _tensors(result) if each.requires_grad]
        if call.backward and results:
            torch.autograd.backward(results, [torch.ones_like(each) for each in results])
        torch.neuron.synchronize()
    except BaseException:
        session.abandon()
        assembler.discard()
        raise
    session.stop()
    assembler.finish(complete=True, exit_status=None, derived=False)
    return Written(own.directory, call.times)


def _class_of(module: str, name: str, file: str) -> Any:
    found: Any = _imported(module, file)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise UsageError(f"{name} is no longer in the file.")
    return found


@cache
def _imported(module: str, file: str) -> ModuleType:
    """A module once for all its classes."""
    return load(module, file)


def _tensors(result: Any) -> Iterator[Any]:
    """The tensors of what a module gives."""
    if hasattr(result, "requires_grad"):
        yield result
    elif isinstance(result, Mapping):
        for each in result.values():
            yield from _tensors(each)
    elif isinstance(result, (tuple, list)):
        for each in result:
            yield from _tensors(each)
