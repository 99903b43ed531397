"""A pytest plugin for a checkout of nki-library: picks its cases, limits them, and writes how each ended.

`scripts/public_kernels.py` starts pytest with it. It changes one thing of the library's test helpers: a case
of several ranks, which they run on hardware only, is run with `run_ranks`, all ranks in this process.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import absent_modules
import einsum_products
import file_memory
import numpy as np
import pytest
import repeated_references
import single_draws
from public_places import place_of

COLLECTED, CASES, RESULTS, MEMORY, SECONDS = (
    f"PUBLIC_KERNELS_{name}" for name in ("COLLECTED", "CASES", "RESULTS", "MEMORY_GIB", "SECONDS")
)
PRECISE = "NKI_PRECISE_FP"
"""Environment variable: "0" computes without rounding to narrow floats."""
_ROUNDED = pytest.StashKey[str]()
"""Its value for a case that passed only with the other one."""
_OWN_ASSERTION = "[NCC_INKI016] Kernel validation exception"
"""How kernels of the library refuse arguments (its `kernel_assert`), on every device alike."""
_MISTAKES = (LookupError, TypeError, AttributeError, NameError, ImportError)
"""Errors of Python, which tell little without their file."""
_MESSAGE_CHARACTERS = 1500
_KEPT_SHARE = 0.3
"""Part of its memory that a process may keep from case to case, beside that for large arrays."""

_TOOK = pytest.StashKey[float]()
"""Seconds of processor time of a case."""

absent_modules.install()
single_draws.install()
einsum_products.install()
gc.disable()  # what is imported and collected stays: `pytest_collection_finish` turns it on again


def pytest_configure(config: pytest.Config) -> None:
    """Limit the memory of this process: what it writes to, since code and mapped files take none of it."""
    limit = _memory_limit()
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen cases, in the order in which they were chosen."""
    if CASES not in os.environ:
        return
    order = {name: place for place, name in enumerate(Path(os.environ[CASES]).read_text().splitlines())}
    chosen = [item for item in items if item.nodeid in order]
    items[:] = sorted(chosen, key=lambda item: order[item.nodeid])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the names of all cases, where only that is wanted; else let ranks run together.

    What has been made by now, PyTorch's modules and the cases, stays until the end: the garbage collector,
    which runs after every case, leaves it out.
    """
    gc.freeze()
    gc.enable()
    if COLLECTED in os.environ:
        Path(os.environ[COLLECTED]).write_text("\n".join(item.nodeid for item in session.items) + "\n")
    else:
        _run_ranks_together()
        functions = [item for item in session.items if isinstance(item, pytest.Function)]
        repeated_references.install({function.module for function in functions})


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which case is running: where the process dies, that one killed it."""
    _write({"case": nodeid, "outcome": "started"})


class NotFinishedError(BaseException):
    """A case has taken the processor time that it may take."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a case; where its values differ from the reference, once more with the other rounding.

    The library's references round as the device does, or not at all, each test as its author chose; AWS's
    simulator knows both, and the default changed after release 2.29 (NKI CPU simulator, aws-neuron-sdk).
    Without rounding, narrow floats take more memory: a case that lacks some is run with rounding too.
    """
    before = time.process_time()
    with _limited_time():
        outcome: Any = yield
    item.stash[_TOOK] = round(time.process_time() - before, 2)
    if outcome.excinfo is None or not _may_pass_rounded(outcome.excinfo[1]):
        return
    first = os.environ.get(PRECISE, "1")
    os.environ[PRECISE] = "1" if first == "0" else "0"
    _let_go(outcome.excinfo[1])
    try:
        with _limited_time():
            item.runtest()
    except (Exception, NotFinishedError):  # the first failure is the one that is told
        return
    else:
        item.stash[_ROUNDED] = os.environ[PRECISE]
        outcome.force_result(None)
    finally:
        os.environ[PRECISE] = first


def _may_pass_rounded(error: BaseException) -> bool:
    """Whether a case may pass with the other rounding: its values differ, or its kernel lacks memory."""
    lacks_memory = "llocate" in str(error)  # as NumPy and PyTorch say it
    return type(error).__name__ == ("InferenceException" if lacks_memory else "ValidationException")


def _lacks_resources(error: BaseException) -> bool:
    """Whether a case took more time or memory than it may."""
    return isinstance(error, (NotFinishedError, MemoryError)) or "llocate" in str(error)


def _let_go(error: BaseException | None) -> None:
    """Give back the arrays that a failed run's frames hold."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


@contextmanager
def _limited_time() -> Iterator[None]:
    """Limit the processor time of a block, which a busy machine does not lengthen as it does wall time."""
    seconds = float(os.environ.get(SECONDS, "0"))

    def stop(*_: object) -> None:
        raise NotFinishedError(f"not finished within {seconds:g} seconds of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write how a case ended."""
    report = yield
    if report.when == "call" or report.outcome != "passed":
        message = "" if call.excinfo is None else _message(call.excinfo)
        _write({"case": item.nodeid, "outcome": _outcome(report, message),
                "seconds": item.stash.get(_TOOK, 0.0), "message": message[:_MESSAGE_CHARACTERS],
                "precise": item.stash.get(_ROUNDED, os.environ.get(PRECISE, "1")),
                "large": _is_large(item)})  # fmt: skip
    return report


def _message(error: pytest.ExceptionInfo[BaseException]) -> str:
    """What a case failed with, and where it lacked time or memory or made a mistake in Python."""
    message = f"{error.type.__name__}: {error.value}"
    if _lacks_resources(error.value):
        return f"{message.splitlines()[0]} {place_of(error.value)}"
    if isinstance(error.value, _MISTAKES):
        return f"{message} (in {Path(error.traceback[-1].path).name})"
    return message


def _is_large(item: pytest.Item) -> bool:
    """Whether the library's own simulator run leaves a case out for its sizes, unless all are asked for."""
    setup = sys.modules.get("test.utils.simulation_setup")
    patterns = getattr(setup, "_LARGE_SHAPE_PATTERNS", ())
    slow = item.get_closest_marker("slow_simulation") is not None
    return slow or any(pattern in item.name for pattern in patterns)


def _outcome(report: pytest.TestReport, message: str) -> str:
    """pytest's outcome; "expected" for a failure that the library expects, "refused" for one of its own."""
    if report.outcome == "skipped" and hasattr(report, "wasxfail"):
        return "expected"
    return "refused" if report.outcome == "failed" and _OWN_ASSERTION in message else report.outcome


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End a process that keeps much memory, so that the next one begins empty."""
    for name in ("last_value", "last_traceback", "last_exc", "last_type"):  # they hold a failed case's arrays
        if hasattr(sys, name):
            delattr(sys, name)
    gc.collect()
    most = _memory_limit() * _KEPT_SHARE + file_memory.resident_bytes()
    if _data_bytes() > most:
        file_memory.let_go()
    if _data_bytes() > most:
        item.session.shouldstop = "this process keeps too much memory; another one goes on"


def _memory_limit() -> int:
    """Bytes of memory that a process may take."""
    return int(float(os.environ.get(MEMORY, "10")) * 2**30)


def _data_bytes() -> int:
    """Bytes that this process may write to; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _write(row: dict[str, Any]) -> None:
    if RESULTS in os.environ:
        with open(os.environ[RESULTS], "a") as file:
            file.write(json.dumps(row) + "\n")


def _run_ranks_together() -> None:
    """Let the library's orchestrator simulate cases of several ranks, with inputs that differ or not."""
    try:
        from test.utils import test_orchestrator  # of the checkout that is tested
    except ImportError:
        return
    orchestrator = test_orchestrator.Orchestrator
    orchestrator._compiled_kernel = None  # which only compiling sets, though simulation asks for it
    alone = orchestrator._run_simulator_inference

    def simulate(self: Any, case: Any) -> Any:
        if case.inference_args.collective_ranks <= 1 and not hasattr(case.kernel_input, "for_rank"):
            return alone(self, case)
        try:
            return _simulate_ranks(self, case)
        except Exception as error:
            raise test_orchestrator.InferenceException(str(error)) from error

    orchestrator._run_simulator_inference = simulate


def _simulate_ranks(orchestrator: Any, case: Any) -> str:
    from test.utils import common_dataclasses

    from neuron_tools.nki.kernel import jit
    from neuron_tools.nki.ranks import run_ranks
    from neuron_tools.nki.tracer import Recording

    ranks = case.inference_args.collective_ranks
    os.environ["NKI_NC_VERSION"] = case.compiler_input.platform_target.get_nc_gen()
    kernel = jit(case.kernel_func)[case.compiler_input.logical_nc_config]
    signature = inspect.signature(kernel.func)
    arguments = []
    for rank in range(ranks):
        inputs = case.kernel_input
        named_inputs = inputs.for_rank(rank) if hasattr(inputs, "for_rank") else inputs
        given = {name.removesuffix(".must_alias_input"): _kept(value) for name, value in named_inputs.items()}
        bound = signature.bind(**given)
        bound.apply_defaults()  # `args` ends at the first argument that is left out
        arguments.append(bound.args)
    base = os.path.join(orchestrator.fs_config.artifacts_output_directory_path, test_folder())
    for rank, run in enumerate(run_ranks(kernel, arguments, recording=Recording.CALLS)):
        golden = case.validation_args.golden_output
        wanted = golden.for_rank(rank) if hasattr(golden, "for_rank") else (
            common_dataclasses.normalize_golden_output(golden))  # fmt: skip
        outputs = run.outputs if isinstance(run.outputs, (list, tuple)) else [run.outputs]
        named = {name: np.asarray(value) for name, value in zip(wanted, outputs)}
        folder = os.path.join(base, f"output_worker_{rank}") if ranks > 1 else base
        orchestrator.__dump_tensors__(folder, named, lambda name: name)
    return base


def _kept(value: Any) -> Any:
    """An input that the kernel leaves as it is, as those of the hardware run, which lie in files.

    References that are computed after the kernel ran start from the same inputs.
    """
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def test_folder() -> str:
    """The folder of a case's results, as the library names it."""
    from test.utils.common_dataclasses import INF_ARTIFACT_DIR_NAME

    return str(INF_ARTIFACT_DIR_NAME)
