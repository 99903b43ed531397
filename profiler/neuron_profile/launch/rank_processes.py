"""Runs a command once for each rank of a job that is to run, as torchrun would start them.

`python -m neuron_profile.launch.rank_processes` stands between the capture and the command. It imports no
torch: the ranks are recorded, this process is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_tools.capture.options import VARIABLE as CAPTURE_VARIABLE
from neuron_tools.device.distributed.job import VARIABLE as JOB_VARIABLE
from neuron_tools.device.distributed.job import Job
from neuron_tools.listening import free_port

AUTO = "auto"
_POLL_S = 0.2
_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
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
    """Run the ranks to their end; the exit status is the first that is not 0."""
    running = plan.running if plan.running is not None else differing_ranks(plan, command, environment)
    print(f"neuron-profile: of {plan.ranks} ranks, these run: {_listed(running)}", file=sys.stderr)
    job, port = Job(plan.ranks, running), free_port()
    processes = [
        subprocess.Popen(command, env={**environment, **rank_environment(plan, job, rank, port)})
        for rank in running
    ]
    return _wait_for_all(processes)


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
        subprocess.run(command, env=told, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return tuple(json.loads(answer.read_text(encoding="utf-8"))) if answer.exists() else (0,)


def _wait_for_all(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """As torchrun does: where one fails, the others are ended."""
    while any(process.poll() is None for process in processes):
        if any(process.returncode not in (None, 0) for process in processes):
            break
        time.sleep(_POLL_S)
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
    failed = [process.returncode for process in processes if process.returncode]
    return next((code if code > 0 else 128 - code for code in failed), 0)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


def _main(arguments: Sequence[str]) -> int:
    ranks, running, per_node, _, *command = arguments
    chosen = None if running == AUTO else tuple(int(each) for each in running.split(","))
    return run_ranks(RankPlan(int(ranks), chosen, int(per_node)), command, dict(os.environ))


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
