"""Runs AWS's public tutorials on the simulated device, and compares what they give with the CPU's.

python scripts/aws_tutorials.py                     all whose copy and packages are there
python scripts/aws_tutorials.py bert_pretraining    one

`AWS_TUTORIALS` names the folder with fetched copies of AWS's repositories, such as aws-neuron-samples; this
fetches nothing. `AWS_TUTORIALS_PACKAGES` may name a folder with a folder of Python packages for each
tutorial, of the versions that it asks for; these go first on its path. Each runs in a folder of its own with
random weights and data; the edits (`aws_tutorial_list.py`) concern data, model hub and sizes alone. Training
scripts run on the CPU too, with another device; those of inference run the model on the CPU themselves.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from aws_tutorial_data import PREPARE
from aws_tutorial_lines import LEAST, LineShares, share_at_lines
from aws_tutorial_list import TUTORIALS, Tutorial
from aws_tutorial_notebooks import kept_outputs, script_of

from neuron_tools.arrays import Floats
from neuron_tools.compat import python_path

FOLDER, PACKAGES = "AWS_TUTORIALS", "AWS_TUTORIALS_PACKAGES"
TO_CPU = (("xm.xla_device()", "torch.device('cpu')"), ("'xla'", "'cpu'"), ("group('cpu'", "group('gloo'"))
"""What makes a script of the device `xla` one of the CPU."""
CPU_SECONDS = 900
"""What a process may take: a limit of the clock would depend on what else the machine does."""
PROFILE = "run.nprof"
RANK = re.compile(r"\[\D*(\d+)\]:")
"""What `--tee` puts before each line of a rank."""
RAISED = re.compile(r"(?:\[\D*\d+\]:)?[\w.]+(?:Error|Exception)\b")
"""The line that says which error ended a program."""
Figures = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """What one tutorial did.

    Attributes:
        name: Which.
        expected: The CPU's figures: those of each rank, in the order in which it prints them; of
            inference the values of each output.
        figures: The device's.
        problem: Why it did not run; empty where it did.
        lines: How much of the device's time stands at source lines.
    """

    name: str
    expected: Figures = ()
    figures: Figures = ()
    problem: str = ""
    lines: LineShares | None = None

    @property
    def passed(self) -> bool:
        """Whether all figures are the CPU's, each in its place."""
        if not self.expected or [*map(len, self.figures)] != [*map(len, self.expected)]:
            return False
        share = TUTORIALS[self.name].tolerance
        if TUTORIALS[self.name].outputs:
            return all(apart <= share for apart in self.apart)
        pairs = zip(chain(*self.figures), chain(*self.expected))
        return all(abs(a - b) <= share * max(abs(b), 1e-9) + 2e-4 for a, b in pairs)

    @property
    def has_lines(self) -> bool:
        """Whether nearly all of the device's time stands at source lines."""
        return self.lines is not None and self.lines.lines >= LEAST

    @property
    def apart(self) -> list[float]:
        """How far the values of each output are apart at most, as a share of the CPU's largest."""
        return [
            float(np.max(np.abs(np.subtract(device, cpu))) / np.max(np.abs(cpu)))
            for device, cpu in zip(self.figures, self.expected)
        ]

    def __str__(self) -> str:
        """What was compared, in a line."""
        return self.problem or "; ".join(filter(None, (self._compared(), str(self.lines or ""))))

    def _compared(self) -> str:
        if not TUTORIALS[self.name].outputs:
            return f"device {self.figures}, CPU {self.expected}"
        sizes = ", ".join(str(len(values)) for values in self.expected)
        shares = ", ".join(f"{apart:.1e}" for apart in self.apart)
        return f"outputs of {sizes} values are apart by at most {shares} of the largest"


def missing(name: str) -> str:
    """What a tutorial needs and is not there; empty where all is."""
    tutorial, copies = TUTORIALS[name], os.environ.get(FOLDER, "")
    if not copies or not (Path(copies) / tutorial.source / tutorial.script).is_file():
        return f"{FOLDER} names no folder with {tutorial.source}/{tutorial.script}"
    own = _packages(name)
    absent = [
        each for each in tutorial.packages if not (own and (own / each).exists()) and not find_spec(each)
    ]
    return f"it imports {', '.join(absent)}" if absent else ""


def run_tutorial(name: str) -> Outcome:
    """Run a tutorial on the device, and on the CPU where it does not do so itself."""
    tutorial = TUTORIALS[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "tutorial"
        shutil.copytree(Path(os.environ[FOLDER]) / tutorial.source, folder)
        script = _write_scripts(folder, tutorial)
        printed = []
        for command in _commands(name, script):
            ended = _run(name, command, folder)
            if ended.returncode:
                return Outcome(name, problem=_last_line(ended))
            printed.append(f"{ended.stdout}\n{ended.stderr}")
        cpu, device = _figures(tutorial, folder, printed)
        lines = share_at_lines(folder / PROFILE, folder)
        return Outcome(name, cpu, device, "" if lines else "nothing ran on the device", lines)


def _figures(tutorial: Tutorial, folder: Path, printed: Sequence[str]) -> tuple[Figures, Figures]:
    """What the CPU gave, and the device."""
    if not tutorial.outputs:
        return figures_in(printed[1], tutorial.shown), figures_in(printed[-1], tutorial.shown)
    device, cpu = kept_outputs(folder)
    return _as_figures(cpu), _as_figures(device)


def _commands(name: str, script: str) -> Iterable[Sequence[str]]:
    """What is run in turn: data, the CPU's run where the tutorial needs one, the device's."""
    tutorial = TUTORIALS[name]
    yield [__file__, "--prepare", name]
    if tutorial.shown:
        arguments = tutorial.arguments if tutorial.cpu_arguments is None else tutorial.cpu_arguments
        yield [*tutorial.launch, _cpu_script(script), *arguments]
    if tutorial.compiles:
        yield ["-m", "neuron_tools", "--target", tutorial.target, script, *tutorial.compiles]
    capture = ["-m", "neuron_profile.cli", "capture", "--target", tutorial.target, "-o", PROFILE, "--"]
    program = [sys.executable, *tutorial.launch, script, *tutorial.arguments]
    yield [*capture, *program]


def _as_figures(outputs: Iterable[Floats]) -> Figures:
    return tuple(tuple(values.tolist()) for values in outputs)


def figures_in(output: str, shown: str) -> Figures:
    """The figures that ranks print: their lines come in any order, those of one rank in its own.

    Args:
        output: Of all ranks, each line after its rank's name; lines without one are rank 0's.
        shown: Pattern of a figure.

    Returns:
        The figures of each rank, by rank; none for a rank that prints none before one that does.
    """
    of_ranks: dict[int, list[float]] = {}
    for line in output.splitlines():
        rank = RANK.match(line)
        for figure in re.findall(shown, line):
            of_ranks.setdefault(int(rank[1]) if rank else 0, []).append(float(figure))
    return tuple(tuple(of_ranks.get(rank, ())) for rank in range(max(of_ranks, default=-1) + 1))


def _write_scripts(folder: Path, tutorial: Tutorial) -> str:
    """Edit the script, and write the CPU's beside it; returns its name."""
    file = folder / tutorial.script
    is_notebook = file.suffix == ".ipynb"
    text = script_of(file, tutorial.outputs) if is_notebook else file.read_text(encoding="utf-8")
    for old, new in tutorial.edits.items():
        if old not in text:
            raise ValueError(f"{file.name} does not have {old!r}: the edits are for another version of it.")
        text = text.replace(old, new)
    script = file.with_suffix(".py")
    script.write_text(text, encoding="utf-8")
    for old, new in (*tutorial.for_cpu.items(), *TO_CPU):
        text = text.replace(old, new)
    (folder / _cpu_script(tutorial.script)).write_text(text, encoding="utf-8")
    return str(script.relative_to(folder))


def _cpu_script(script: str) -> str:
    return str(Path(script).with_name(f"cpu_{Path(script).stem}.py"))


def _run(name: str, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    own = _packages(name)
    scripts = str(Path(__file__).parent)
    path = [str(folder), *([str(own)] if own else []), os.environ.get("PYTHONPATH", ""), scripts]
    environment = {
        **os.environ,
        **TUTORIALS[name].environment,
        "PYTHONPATH": python_path({"PYTHONPATH": os.pathsep.join(filter(None, path))}),
        "HF_HUB_OFFLINE": "1",
        "BASE_COMPILE_WORK_DIR": str(folder / "work"),  # else a folder that all programs share
        "TORCH_HOME": str(folder / "torch_home"),
        "NEURON_TOOLS_AWS_NAMES": "1",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True,
        preexec_fn=_limit_time, check=False,
    )  # fmt: skip


def _limit_time() -> None:
    """Of this process and of those that it starts, each."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def _packages(name: str) -> Path | None:
    """The folder itself: dill pickles modules by value where no `site-packages` is in their path."""
    folder = os.environ.get(PACKAGES)
    return (Path(folder) / name).resolve() if folder and (Path(folder) / name).is_dir() else None


def _last_line(ended: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in ended.stderr.splitlines() if RAISED.match(line)]
    return lines[0].strip() if lines else f"exit status {ended.returncode}"


def _tutorial(name: str) -> str:
    if name not in TUTORIALS:
        raise argparse.ArgumentTypeError(f"No tutorial is named {name}: choose from {', '.join(TUTORIALS)}.")
    return name


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Exit status: 0 where all that could run passed, 1 where one failed, 2 for a wrong use.\n\n"
        f"Tutorials: {', '.join(TUTORIALS)}",
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", type=_tutorial, metavar="NAME", help="a tutorial; all where none is named"
    )
    parser.add_argument(
        "--prepare", choices=PREPARE, help=argparse.SUPPRESS
    )  # what each starts in its folder
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the tutorials that are named, or all; returns 1 where one fails."""
    parsed = _parse(arguments)
    if parsed.prepare:
        PREPARE[parsed.prepare]()
        return 0
    failures = 0
    for name in parsed.names or TUTORIALS:
        reason = missing(name)
        if reason:
            print(f"{name}: not run: {reason}")
            continue
        outcome = run_tutorial(name)
        holds = outcome.passed and outcome.has_lines
        failures += not holds
        print(f"{name}: {'passed' if holds else 'FAILED'}: {outcome}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
