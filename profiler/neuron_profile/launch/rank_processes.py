"""Runs a command once for each rank of a job that is to run, as torchrun would start them.

`python -m neuron_profile.launch.rank_processes` stands between the capture and the command. It imports no
torch: the ranks are recorded, this process is not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from neuron_profile.launch.orphans import ended_with_parent
from neuron_profile.launch.signals import STOPS
from neuron_tools.capture.options import VARIABLE as CAPTURE_VARIABLE
from neuron_tools.device.distributed.job import VARIABLE as JOB_VARIABLE, Job
from neuron_tools.frozen import frozen
from neuron_tools.listening import free_port

AUTO = "auto"
_POLL_S = 0.2
_GRACE_S = 10.0


@frozen
class RankPlan:
    """What to run.

    Attributes:
        ranks: Of the job.
        running: Those that run; None: the first finds out which differ from it.
        per_node: Ranks of one instance.
    """

    ranks: int
    running: tuple[int, ...] | None
    per_node: int

    def command(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """The command that runs `arguments` for each rank."""
        running = AUTO if self.running is None else ",".join(map(str, self.running))
        numbers = (str(self.ranks), running, str(self.per_node))
        return (sys.executable, "-m", "neuron_profile.launch.rank_processes", *numbers, "--", *arguments)


def rank_environment(plan: RankPlan, job: Job, rank: int, port: int) -> dict[str, str]:
    """What torchrun's elastic agent tells a rank, for a job on instances of `plan.per_node` ranks."""
    per_node = min(plan.per_node, plan.ranks)
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(plan.ranks),
        "LOCAL_RANK": str(rank % per_node),
        "LOCAL_WORLD_SIZE": str(per_node),
        "GROUP_RANK": str(rank // per_node),
        "GROUP_WORLD_SIZE": str(-(-plan.ranks // per_node)),
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(plan.ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": "none",
        JOB_VARIABLE: job.to_json(),
    }


def run_ranks(plan: RankPlan, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the ranks to their end; the exit status is the first that is not 0.

    A signal to all of this process's group stops the job: the ranks have it too, and this returns after them,
    so that what they still write is recorded. Where this process is killed, or the one that started it, the
    ranks are ended: a part of a job is of no use to anybody but its capture.
    """
    parent = os.getppid()
    running = plan.running if plan.running is not None else differing_ranks(plan, command, environment)
    print(f"neuron-profile: of {plan.ranks} ranks, these run: {_listed(running)}", file=sys.stderr)
    job, port = Job(plan.ranks, running), free_port()
    environments = [{**environment, **rank_environment(plan, job, rank, port)} for rank in running]
    with _Stops() as stops:
        processes = [
            subprocess.Popen(command, env=each, preexec_fn=ended_with_parent()) for each in environments
        ]
        return _wait_for_all(processes, stops, parent)


class _Stops:
    """While it is entered, a signal that stops the job is noted, and the first is what ended it.

    The handlers are functions, not SIG_IGN, so that the ranks get the signals' defaults.
    """

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> _Stops:
        self._before = {number: signal.signal(number, self._note) for number in STOPS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: object) -> None:
        self.number = self.number or number


def differing_ranks(
    plan: RankPlan, command: Sequence[str], environment: Mapping[str, str]
) -> tuple[int, ...]:
    """Ranks that do different work from rank 0: the stages of its pipeline.

    Rank 0 runs alone, unrecorded, until it sends to or receives from another rank, or has reached its
    first optimizer step.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "ranks.json"
        job = Job(plan.ranks, (0,), str(answer))
        told = {**environment, **rank_environment(plan, job, 0, free_port())}
        told.pop(CAPTURE_VARIABLE, None)
        subprocess.run(
            command,
            env=told,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            preexec_fn=ended_with_parent(),
        )
        return tuple(json.loads(answer.read_text(encoding="utf-8"))) if answer.exists() else (0,)


def _wait_for_all(processes: Sequence[subprocess.Popen[bytes]], stops: _Stops, parent: int) -> int:
    """As torchrun does: where one fails, or the job is stopped, the others are ended.

    After a signal they may end by themselves: it came to them, too.
    """
    failed = 0
    while not stops.number and os.getppid() == parent:
        statuses = [process.poll() for process in processes]
        failed = next(filter(None, statuses), 0)
        if failed or None not in statuses:
            break
        time.sleep(_POLL_S)
    if stops.number:
        _wait(processes)
    _end(processes)
    if stops.number:
        return 128 + stops.number
    return failed if failed >= 0 else 128 - failed


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Terminate those that run; kill what is left after the grace."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    if not _wait(processes):
        for process in processes:
            process.kill()
            process.wait()


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> bool:
    """Wait for all, at most the grace; whether they have ended."""
    deadline = time.monotonic() + _GRACE_S
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return all(process.poll() is not None for process in processes)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


def _main(arguments: Sequence[str]) -> int:
    ranks, running, per_node, _, *command = arguments
    chosen = None if running == AUTO else tuple(int(each) for each in running.split(","))
    return run_ranks(RankPlan(int(ranks), chosen, int(per_node)), command, dict(os.environ))


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
