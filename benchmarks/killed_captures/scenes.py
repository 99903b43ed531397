"""What is captured, and then killed: one process, ranks, forks, and commands as users start them.

A program makes a small step of work on the device every few milliseconds, under a name with its number, and
notes each finished one with its time in a file of its own. What was written there stays when the process is
killed, and says what its profile must hold.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from neuron_tools.frozen import frozen
from neuron_tools.listening import free_port

TICK = "tick {program} {number}"
PROFILE = "run.nprof"
STAMP = struct.Struct("<q")
"""The monotonic time at which a tick was done, in ns."""
NOTES = "ticks-{program}"
ENDED = ".ended"
"""What a file of ticks is followed by when its program came to its end."""
PROCESSES = "processes"
"""A file with the number of each process that uses the device."""
PAUSE_S = 0.01
POLL_S = 1.0
"""How often `neuron-profile capture` turns what was logged into tables."""
FORK_EVERY = 20
CHILD_S = 0.3
KILLED = 137
SIZE = 16
Program = Callable[[Path, int], None]


@frozen
class Scene:
    """What is captured.

    Attributes:
        play: Captures a program that makes so many ticks, with a folder of its own.
        programs: How many are recorded.
    """

    play: Program
    programs: int


def record_itself(folder: Path, ticks: int) -> None:
    """A process that records a block of its own (`with neuron_tools.profile(...)`)."""
    import neuron_tools

    with neuron_tools.profile(folder / PROFILE):
        tick(folder, 0, ticks)


def capture_program(folder: Path, ticks: int) -> None:
    """A captured program of one process."""
    _capture(folder, [{}], tick, ticks)


def capture_ranks(folder: Path, ticks: int) -> None:
    """A captured job of two ranks that train one model (DDP)."""
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    ranks = [{**job, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)]
    _capture(folder, ranks, _train, ticks)


def capture_forks(folder: Path, ticks: int) -> None:
    """Two captured programs that fork now and then; their children use the device and end without a word."""
    _capture(folder, [{}, {}], _tick_and_fork, ticks)


def capture_command(folder: Path, ticks: int) -> None:
    """`neuron-profile capture -- python program.py`, from its start-up on."""
    _exec_capture(folder, ["python", "-m", __name__, "tick", str(folder), str(ticks)])


def capture_torchrun(folder: Path, ticks: int) -> None:
    """`neuron-profile capture -- torchrun ...`, from its start-up on."""
    launcher = ["torchrun", "--nproc_per_node", "2", "--master_port", str(free_port())]
    _exec_capture(folder, [*launcher, "-m", __name__, "train", str(folder), str(ticks)])


SCENES: Mapping[str, Scene] = {
    "with profile(...)": Scene(record_itself, 1),
    "one process": Scene(capture_program, 1),
    "forks": Scene(capture_forks, 2),
    "DDP": Scene(capture_ranks, 2),
    "neuron-profile capture": Scene(capture_command, 1),
    "torchrun": Scene(capture_torchrun, 2),
}


def tick(
    folder: Path, program: int, ticks: int, further: Callable[[int], object] = lambda number: None
) -> None:
    """Make so many small steps of work, and note each."""
    import torch

    _tell_process(folder)
    tensor = torch.ones(SIZE, device="neuron")
    notes = folder / NOTES.format(program=program)
    with notes.open("wb", buffering=0) as file:
        for number in range(ticks):
            with torch.profiler.record_function(TICK.format(program=program, number=number)):
                tensor = torch.relu(tensor + 1)
                further(number)
                tensor.sum().item()
            file.write(STAMP.pack(time.monotonic_ns()))
            time.sleep(PAUSE_S)
    notes.with_name(notes.name + ENDED).touch()


def _tick_and_fork(folder: Path, program: int, ticks: int) -> None:
    import torch

    def fork(number: int) -> None:
        if number % FORK_EVERY == FORK_EVERY - 1:
            _forked(use_device)

    def use_device() -> None:
        _tell_process(folder)
        until = time.monotonic() + CHILD_S
        while time.monotonic() < until:
            torch.ones(SIZE, device="neuron").sum().item()
            time.sleep(PAUSE_S)

    tick(folder, program, ticks, fork)


def _train(folder: Path, program: int, ticks: int) -> None:
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel

    torch.distributed.init_process_group("neuron")
    model = DistributedDataParallel(torch.nn.Linear(SIZE, SIZE).to("neuron"))
    batch = torch.ones(SIZE, SIZE, device="neuron")
    tick(folder, program, ticks, lambda number: model(batch).sum().backward())


def _tell_process(folder: Path) -> None:
    with (folder / PROCESSES).open("ab", buffering=0) as file:
        file.write(b"%d\n" % os.getpid())


def _exec_capture(folder: Path, command: list[str]) -> None:
    tool = Path(sys.executable).with_name("neuron-profile")
    started = [tool, "capture", "-o", folder / PROFILE, "--", *command]
    os.environ["PATH"] = os.pathsep.join([str(tool.parent), os.environ["PATH"]])
    os.execv(tool, list(map(str, started)))


def _capture(
    folder: Path, environments: list[dict[str, str]], program: Callable[[Path, int, int], None], ticks: int
) -> None:
    """What `neuron-profile capture` does, with programs that are forked where it starts a command."""
    from neuron_tools.capture.assembler import Assembler
    from neuron_tools.capture.options import CaptureOptions

    options = CaptureOptions(folder / PROFILE)
    assembler = Assembler(options, ["program"])
    children = {
        _forked(partial(_record, options, own, partial(program, folder, number, ticks)))
        for number, own in enumerate(environments)
    }
    is_whole = _follow(children, assembler.poll)
    assembler.finish(complete=True, exit_status=0 if is_whole else KILLED)


def _follow(children: set[int], poll: Callable[[], None]) -> bool:
    """Wait for all; whether they ended well. Where one is lost, the others are ended, as launchers do."""
    is_whole, next_poll = True, time.monotonic() + POLL_S
    while children:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended in children and status:
            is_whole = False
            for child in children - {ended}:
                os.kill(child, 9)
        children.discard(ended)
        if time.monotonic() > next_poll:
            poll()
            next_poll = time.monotonic() + POLL_S
        time.sleep(PAUSE_S)
    return is_whole


def _record(options: object, environment: Mapping[str, str], work: Callable[[], None]) -> None:
    from neuron_tools.capture.environment import child_environment
    from neuron_tools.capture.options import CaptureOptions
    from neuron_tools.capture.runtimes.torch_runtime import TorchRuntime
    from neuron_tools.capture.session import CaptureSession
    from neuron_tools.device.autoload import register

    assert isinstance(options, CaptureOptions)
    os.environ.update({**child_environment(options), **environment})
    register()
    session = CaptureSession(options, TorchRuntime())
    session.start()
    work()
    session.stop()


def _forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]  # there is an exception
        os._exit(1)


if __name__ == "__main__":
    _name, _folder, _ticks = sys.argv[1:]
    _program = {"tick": tick, "train": _train}[_name]
    _program(Path(_folder), int(os.environ.get("RANK", "0")), int(_ticks))
