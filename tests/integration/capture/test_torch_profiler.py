"""torch.profiler inside a capture: no crash, and the events that it records without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_tools.profile.verify import verify
from tests.integration.commands.capturing import Workplace

SCRIPT = """\
import collections, json, sys, threading
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


model = MLP().to("neuron")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(2, 8, device="neuron")
found = {}
FILES = ("torch/autograd/", "torch/optim/", "torch/nn/", "torch/profiler/", "torch/_tensor.py")


def step(module=model):
    optimizer.zero_grad()
    with record_function("forward"):
        loss = module(x).sum()
    loss.backward()
    optimizer.step()


def profiling(**options):
    everything = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    return profile(activities=activities, **{**everything, **options})


def note(name, profiler):
    profiler.export_chrome_trace("trace.json")
    with open("trace.json") as file:
        events = [event for event in json.load(file)["traceEvents"] if "cat" in event]
    kinds = ("cpu_op", "user_annotation", "kernel", "gpu_memcpy")
    modules = [event["name"] for event in events if event["name"].startswith("nn.Module")]
    found.setdefault(name, []).append({
        "events": collections.Counter(event["cat"] for event in events if event["cat"] in kinds),
        # Not how many: autograd's thread may free memory after the window's end.
        "has_memory": any(event["cat"] == "cpu_instant_event" for event in events),
        "modules": collections.Counter(modules),
        # PyTorch's own Python around each operation, and ours: hooks must add no frame.
        "frames": collections.Counter(
            event["name"] for event in events
            if event["cat"] == "python_function" and event["name"].startswith(FILES)
        ),
        "hooks": sum("torch_hooks" in event["name"] for event in events),
        "lowering": sum("torch_lowering" in event["name"] for event in events),
        "ours": sum("neuron_tools/" in event["name"] for event in events),
    })


def all_at_once():
    with profiling() as profiler:
        step()
    note("all", profiler)


def one_at_a_time():
    for option in ("record_shapes", "profile_memory", "with_stack"):
        with profiling(**{option: False}) as profiler:
            step()
        note(f"without {option}", profiler)


def scheduled():
    times = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profiling(schedule=times, on_trace_ready=lambda profiler: note("schedule", profiler)) as profiler:
        for _ in range(8):
            step()
            profiler.step()


def threads():
    def work():
        for _ in range(20):
            model.second(torch.ones(1, 16, device="neuron"))

    with profiling() as profiler:
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        step()
        for worker in workers:
            worker.join()
    note("threads", profiler)


def autograd():
    with torch.autograd.profiler.profile(use_device="neuron", with_stack=True) as profiler:
        step()
    found["autograd"] = sum(event.name.startswith("aten::") for event in profiler.function_events)


def nested():
    try:
        with profiling(), profiling():
            step()
    except RuntimeError as error:
        found["nested"] = str(error).splitlines()[0]
    with profiling() as profiler:
        step()
    note("after nested", profiler)


def compiled():
    module = torch.compile(model)
    step(module)
    with profiling(with_stack=True) as profiler:
        step(module)
    note("compiled", profiler)


for part in (all_at_once, one_at_a_time, scheduled, threads, autograd, nested):
    part()
if "--compile" in sys.argv:
    compiled()
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
"""


def found_without_capture(folder: Path, *options: str) -> Any:
    command = [sys.executable, "script.py", "plain.json", *options]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "plain.json").read_text())


def found_in_capture(workplace: Workplace, *options: str) -> Any:
    command = (sys.executable, "script.py", "captured.json", *options)
    answer = workplace.capture(*command, options=("-o", "run.nprof"))
    assert answer.returncode == 0, answer.stderr
    return json.loads((workplace.folder / "captured.json").read_text())


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    workplace = Workplace(tmp_path)
    workplace.script("script.py", SCRIPT)
    return workplace


def test_a_capture_changes_nothing_in_what_torch_profiler_records(workplace: Workplace) -> None:
    captured = found_in_capture(workplace)
    assert captured == found_without_capture(workplace.folder)
    assert captured["all"][0]["modules"] == {
        f"nn.Module: {name}": 1 for name in ("MLP_0", "Linear_0", "Linear_1")
    }
    assert captured["all"][0]["frames"]
    assert captured["all"][0]["lowering"] == captured["all"][0]["hooks"] == 0
    with neuron_tools.open_profile(workplace.folder / "run.nprof") as profile:
        assert verify(profile) == []
        rows = profile.query("SELECT DISTINCT layer FROM Instruction WHERE layer LIKE '/MLP/%'").to_pylist()
        assert {row["layer"] for row in rows} == {"/MLP/first", "/MLP/second"}


@pytest.mark.slow
def test_compiled_modules_have_the_same_rows_too(workplace: Workplace) -> None:
    captured, plain = (
        found_in_capture(workplace, "--compile"),
        found_without_capture(workplace.folder, "--compile"),
    )
    for found in (captured, plain):  # a graph is one kernel in a capture, and its operators one each without
        del found["compiled"][0]["events"]["kernel"], found["compiled"][0]["frames"]
    assert captured == plain
