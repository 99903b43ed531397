"""What capturing costs the program: recording an eager operation, and the device itself without recording.

The same loop of small eager operations runs plain, recorded, and under torch.profiler, in turn. Costs are
those of the loop over the number of operations. Starting and stopping are left out of what is compared:
torch.profiler builds its result when it stops, while a capture's profile is assembled by another process.
Ours with starting and stopping stands alone. Publishing is the processor time of the thread that writes the
simulated driver's tree, over the time of a recorded loop. Assembling is the processor time of all threads in
which a recorded loop's log becomes a profile. Sampling is what the process's own processor time grows by,
that of the sampler's thread included, over turns of a recorded training loop with and without looks.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import clock_gettime, monotonic, perf_counter_ns, process_time, pthread_getcpuclockid

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.figures import Figure, Peer, Target, fastest_in_turn
from neuron_tools.capture.assembler import Assembler
from neuron_tools.capture.environment import child_environment
from neuron_tools.capture.host_samples.sampler import HostSampler
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.device import native
from neuron_tools.device.driver.runtime import torch_driver

OPERATIONS_PER_TURN = 4
LARGEST_NS = 2_000
DEEP = 24  # frames between the script and the operation, as in a model made of modules
RATIO_TARGET = Target("<=", 3)
PUBLISHING_TARGET = Target("<=", 1)
PUBLISHING_THREAD = "neuron-sysfs"
ASSEMBLING_TARGET = Target("<=", 120, "python")
LOOP = """
import sys, torch
x = torch.ones(8, 8, device="neuron")
w = torch.ones(8, 8, device="neuron", requires_grad=True)
for _ in range(int(sys.argv[1])):
    torch.relu(x * w).sum().backward()
    w.grad = None
"""
SAMPLING_TARGET = Target("<=", 2)
STEPS_PER_TURN = 15


def _program(turns: int) -> Callable[[], None]:
    x = torch.ones(8, 8, device="neuron")
    w = torch.ones(8, 8, device="neuron")

    def train() -> None:
        for _ in range(turns):
            torch.relu((x @ w + x) * w)

    return train


def _called_from(depth: int, program: Callable[[], None]) -> Callable[[], None]:
    def call(frames_left: int) -> None:
        if frames_left:
            call(frames_left - 1)
        else:
            program()

    return lambda: call(depth)


class Stopwatch:
    """Runs the program and keeps its shortest time, apart from what surrounds it."""

    def __init__(self, program: Callable[[], None]) -> None:
        self.program = program
        self.best_ns: float = math.inf

    def __call__(self) -> None:
        started = perf_counter_ns()
        self.program()
        self.best_ns = min(self.best_ns, perf_counter_ns() - started)


def _recorded(program: Callable[[], None], folder: Path) -> Callable[[], None]:
    logs = iter(range(1_000_000))

    def run() -> None:
        log = str(folder / f"{next(logs)}.bin")
        native.start_recording(log, lambda *_: (1, 1_000, 0), lambda *_: None, lambda *_: None)
        program()
        native.stop_recording()

    return run


def _profiled(program: Callable[[], None], with_sources: bool) -> Callable[[], None]:
    def run() -> None:
        with profile(activities=[ProfilerActivity.CPU], with_stack=with_sources, record_shapes=with_sources):
            program()

    return run


def _measure(turns: int, rounds: int) -> tuple[float, dict[str, float]]:
    """Nanoseconds per operation: recorded with starting and stopping, and each loop alone."""
    program = _program(turns)
    deep = _called_from(DEEP, program)
    deep()
    watches = {
        "plain": Stopwatch(program),
        "recorded": Stopwatch(program),
        "recorded deep": Stopwatch(deep),
        "profiled": Stopwatch(program),
        "profiled with sources": Stopwatch(deep),
    }
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], object]] = {
            "plain": watches["plain"],
            "recorded": _recorded(watches["recorded"], Path(folder)),
            "recorded deep": _recorded(watches["recorded deep"], Path(folder)),
            "profiled": _profiled(watches["profiled"], with_sources=False),
            "profiled with sources": _profiled(watches["profiled with sources"], with_sources=True),
        }
        whole_ns = fastest_in_turn(runs, rounds)
    operations = turns * OPERATIONS_PER_TURN
    loop_ns = {name: watch.best_ns / operations for name, watch in watches.items()}
    return whole_ns["recorded"] / operations, loop_ns


def _recording_figures(turns: int, rounds: int) -> list[Figure]:
    whole_ns, loop_ns = _measure(turns, rounds)
    note = f"{turns * OPERATIONS_PER_TURN:,} operations, best of {rounds}"
    added_ns = {name: ns - loop_ns["plain"] for name, ns in loop_ns.items()}

    def against(title: str, recorded: str, profiled: str, peer: str) -> Figure:
        """Holds where it is small and below the peer."""
        target = Target("<=", min(LARGEST_NS, added_ns[profiled]))
        return Figure(title, added_ns[recorded], "ns", target, Peer(peer, added_ns[profiled]), note)

    return [
        against("recording an eager operation", "recorded", "profiled", "torch.profiler, CPU activity"),
        against(
            f"recording an eager operation {DEEP} frames deep",
            "recorded deep",
            "profiled with sources",
            "torch.profiler, record_shapes, with_stack",
        ),
        Figure(
            "recording an eager operation, with starting and stopping",
            whole_ns - loop_ns["plain"],
            "ns",
            Target("<=", LARGEST_NS, "python"),
            note=note,
        ),
        Figure("an eager operation unrecorded", loop_ns["plain"], "ns", note=note),
    ]


def _addition(device: str, count: int) -> Callable[[], None]:
    a, b = torch.ones(4, device=device), torch.ones(4, device=device)

    def add() -> None:
        for _ in range(count):
            a + b

    return add


def _addition_figure(count: int, rounds: int) -> Figure:
    wall_ns = fastest_in_turn({"neuron": _addition("neuron", count), "cpu": _addition("cpu", count)}, rounds)
    ratio = wall_ns["neuron"] / wall_ns["cpu"]
    note = (
        f"neuron {wall_ns['neuron'] / count:,.0f} ns, CPU {wall_ns['cpu'] / count:,.0f} ns, best of {rounds}"
    )
    return Figure("a + b on 4 floats, neuron by CPU", ratio, "x", RATIO_TARGET, Peer("CPU tensor", 1.0), note)


def _publishing_figure(seconds: float) -> Figure:
    """Share of one processor core that publishing takes while operations are recorded."""
    program = _program(1_000)
    (thread,) = (each for each in threading.enumerate() if each.name == PUBLISHING_THREAD)
    assert thread.ident is not None
    clock = pthread_getcpuclockid(thread.ident)

    def busy() -> None:
        deadline = monotonic() + seconds
        while monotonic() < deadline:
            program()

    with tempfile.TemporaryDirectory() as folder:
        started_s, started_cpu_s = monotonic(), clock_gettime(clock)
        _recorded(busy, Path(folder))()
        percent = 100 * (clock_gettime(clock) - started_cpu_s) / (monotonic() - started_s)
    note = f"recorded operations for {seconds:g} s"
    return Figure("publishing in the simulated driver's tree", percent, "%", PUBLISHING_TARGET, note=note)


def _assembling_figure(turns: int) -> Figure:
    """Processor time that assembling takes for each eager operation, without what is derived at the end."""
    with tempfile.TemporaryDirectory() as folder:
        options = CaptureOptions(Path(folder) / "loop.nprof")
        command = [sys.executable, "-c", LOOP, str(turns)]
        assembler = Assembler(options, command)
        subprocess.run(command, env={**os.environ, **child_environment(options)}, check=True)
        started_s = process_time()
        executions = assembler.finish(complete=True, exit_status=0, derived=False).executions
        taken_us = (process_time() - started_s) * 1e6
    note = f"{executions:,} operations, forward and backward"
    return Figure("assembling an eager operation", taken_us / executions, "us", ASSEMBLING_TARGET, note=note)


def _training() -> Callable[[], None]:
    layers = [torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True) for _ in range(2)]
    model = torch.nn.Sequential(*layers).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.ones(4, 8, 32, device="neuron")

    def train() -> None:
        for _ in range(STEPS_PER_TURN):
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    return train


def _processor_s(program: Callable[[], None], sampled: bool) -> float:
    """What all threads of this process take for a program; the sampler looks where the host's clock runs."""
    if not sampled:
        native.pause_clock()
    started_s = process_time()
    program()
    taken_s = process_time() - started_s
    if not sampled:
        native.resume_clock()
    return taken_s


def _sampling_figure(pairs: int) -> Figure:
    """What sampling adds to the processor time, over short neighbouring turns with and without looks.

    A machine's speed drifts by more than looks cost: only neighbours compare, and the least and greatest
    tenths of their ratios, which something else disturbed, are left out.
    """
    program = _training()
    program()
    taken_s: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:

        def turns() -> None:
            sampler = HostSampler(Path(folder))
            sampler.start()
            for pair in range(pairs):
                for sampled in (pair % 2 == 0, pair % 2 == 1):
                    taken_s[sampled].append(_processor_s(program, sampled))
            sampler.stop()

        _recorded(turns, Path(folder))()
    ratios = sorted(one / other for one, other in zip(taken_s[True], taken_s[False], strict=True))
    kept = ratios[pairs // 10 : pairs - pairs // 10]
    error = statistics.stdev(kept) / math.sqrt(len(kept))
    summed = sum(taken_s[True]) / sum(taken_s[False])
    note = (
        f"{pairs} pairs of turns, {sum(taken_s[False]):.0f} s without; ± {100 * error:.1f}; "
        f"by sums, the first sight of each stack included, {100 * (summed - 1):.1f} %"
    )
    return Figure(
        "sampling what the host does", 100 * (statistics.mean(kept) - 1), "%", SAMPLING_TARGET, note=note
    )


def run(quick: bool) -> list[Figure]:
    """Measures; about 15 s when quick."""
    turns, rounds = (2_500, 5) if quick else (10_000, 9)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEURON_SYSFS_ROOT"] = str(Path(folder) / "sysfs")
        try:
            return [
                *_recording_figures(turns, rounds),
                _addition_figure(20_000, rounds * 2),
                _publishing_figure(3 if quick else 10),
                _assembling_figure(5_000 if quick else 30_000),
                _sampling_figure(60 if quick else 400),
            ]
        finally:
            torch_driver.stop()
