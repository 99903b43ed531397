"""Runs AWS's public training tutorials on the simulated device, and compares their losses with the CPU's.

python scripts/aws_tutorials.py                     all whose copy and packages are there
python scripts/aws_tutorials.py bert_pretraining    one

`AWS_TUTORIALS` names the folder with fetched copies of AWS's repositories, such as aws-neuron-samples; this
fetches nothing. `AWS_TUTORIALS_PACKAGES` may name a folder with a folder of Python packages for each
tutorial, of the versions that it asks for; these go first on its path. Each runs in a folder of its own with
small sizes and random data; the edits below concern data, model hub and sizes alone. The CPU runs the same
script with another device.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from aws_tutorial_data import PREPARE

FOLDER, PACKAGES = "AWS_TUTORIALS", "AWS_TUTORIALS_PACKAGES"
SAMPLES = "aws-neuron-samples/torch-neuronx/training"
TO_CPU = (("xm.xla_device()", "torch.device('cpu')"), ("'xla'", "'cpu'"), ("group('cpu'", "group('gloo'"))
"""What makes a script of the device `xla` one of the CPU."""
SECONDS = 900


@dataclass(frozen=True)
class Tutorial:
    """One script.

    Attributes:
        source: Its folder in the fetched copies.
        script: Its file.
        arguments: Of its command.
        shown: Pattern of a figure that it prints; the figures are compared.
        edits: Text -> text in the script; data, model hub and sizes alone.
        for_cpu: Further edits for the CPU's run.
        cpu_arguments: Arguments of the CPU's run, where they are others.
        launch: What starts it.
        packages: What it imports besides PyTorch.
        tolerance: How far figures may be apart, as a share.
    """

    source: str
    script: str
    shown: str
    arguments: Sequence[str] = ()
    edits: Mapping[str, str] = field(default_factory=dict)
    for_cpu: Mapping[str, str] = field(default_factory=dict)
    cpu_arguments: Sequence[str] | None = None
    launch: Sequence[str] = ()
    packages: Sequence[str] = ()
    tolerance: float = 1e-4


ONE_RANK = ("-m", "torch.distributed.run", "--nproc_per_node", "1")
TWO_RANKS = ("-m", "torch.distributed.run", "--nproc_per_node", "2")
_BERT = shlex.split(
    "--data_dir data --batch_size 4 --max_steps 6 --steps_this_run 4 --warmup_steps 1 --grad_accum_usteps 2 "
    "--lr 1e-3 --seq_len 32 --enable_fp32 --print_grad_norm --disable_dropout"
)
_GPT2 = shlex.split(
    "--model_name_or_path gpt2 --load_tokenized_dataset data --config_name config.json --tokenizer_name tok "
    "--per_device_train_batch_size 2 --max_train_steps 4 --learning_rate 0.0015 --lr_scheduler_type cosine "
    "--gradient_checkpointing --seed 1234 --num_warmup_steps 1 --use_grad_clipping --num_train_epochs 1 "
    "--output_dir out"
)
_WITHOUT_XLA = (
    "from accelerate.logging import get_logger\n"
    "import accelerate.state; accelerate.state.is_torch_xla_available = lambda *a, **k: False"
)
TUTORIALS: Mapping[str, Tutorial] = {
    "mlp": Tutorial(f"{SAMPLES}/mnist_mlp", "train.py", r"Final loss is ([\d.]+)"),
    "mlp_torchrun": Tutorial(
        f"{SAMPLES}/mnist_mlp", "train_torchrun.py", r"Final loss is ([\d.]+)", launch=TWO_RANKS
    ),
    "bert_pretraining": Tutorial(
        f"{SAMPLES}/dp_bert_hf_pretrain",
        "dp_bert_large_hf_pretrain_hdf5.py",
        r"step_loss : ([\d.]+)",
        _BERT,
        edits={"'bert-large-uncased'": "'model'"},
        launch=ONE_RANK,
        packages=("h5py", "tensorboard", "transformers", "requests"),
    ),
    "zero1_gpt2": Tutorial(
        f"{SAMPLES}/zero1_gpt2",
        "run_clm_no_trainer.py",
        r"step_loss : ([\d.]+)",
        (*_GPT2, "--use_zero1"),
        edits={
            '"n_embd": 1536': '"n_embd": 48',
            '"n_head": 24': '"n_head": 4',
            "50304 if": "320 if",
            'shuffle=(os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY", None) == None)': "shuffle=False",
            "average_throughput >= 14": "average_throughput >= 0",
        },
        for_cpu={
            "320 if args.use_zero1": "320 if True",
            "if args.use_zero1:\n            model_config": "if True:\n            model_config",
            "from accelerate.logging import get_logger": _WITHOUT_XLA,
        },
        cpu_arguments=_GPT2,
        launch=ONE_RANK,
        packages=("accelerate", "datasets", "tensorboard", "transformers", "requests"),
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What one tutorial did.

    Attributes:
        name: Which.
        expected: The CPU's figures.
        figures: The device's.
        problem: Why it did not run; empty where it did.
    """

    name: str
    expected: tuple[float, ...] = ()
    figures: tuple[float, ...] = ()
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether the figures are the CPU's."""
        pairs = list(zip(sorted(self.figures), sorted(self.expected)))
        alike = len(self.figures) == len(self.expected) > 0
        return alike and all(
            abs(a - b) <= TUTORIALS[self.name].tolerance * max(abs(b), 1e-9) + 2e-4 for a, b in pairs
        )


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
    """Run a tutorial on the CPU and on the device."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "tutorial"
        tutorial = TUTORIALS[name]
        shutil.copytree(Path(os.environ[FOLDER]) / tutorial.source, folder)
        _edit(folder / tutorial.script, tutorial)
        found = []
        for command in (
            [__file__, "--prepare", name],
            [*tutorial.launch, f"cpu_{tutorial.script}", *(tutorial.cpu_arguments or tutorial.arguments)],
            ["-m", "neuron_tools", "--target", "trn1", *_started(tutorial), *tutorial.arguments],
        ):
            ended = _run(name, command, folder)
            if ended.returncode:
                return Outcome(name, problem=_last_line(ended))
            found.append(tuple(map(float, re.findall(tutorial.shown, ended.stdout + ended.stderr))))
        return Outcome(name, found[1], found[2])


def _started(tutorial: Tutorial) -> list[str]:
    return [*tutorial.launch, tutorial.script]


def _edit(script: Path, tutorial: Tutorial) -> None:
    """Edit the script, and write the CPU's beside it."""
    text = script.read_text(encoding="utf-8")
    for old, new in tutorial.edits.items():
        if old not in text:
            raise ValueError(f"{script.name} does not have {old!r}: the edits are for another version of it.")
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")
    for old, new in (*tutorial.for_cpu.items(), *TO_CPU):
        text = text.replace(old, new)
    script.with_name(f"cpu_{script.name}").write_text(text, encoding="utf-8")


def _run(name: str, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    own = _packages(name)
    path = [str(folder), *([str(own)] if own else []), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "HF_HUB_OFFLINE": "1",
        "NEURON_TOOLS_AWS_NAMES": "1",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip


def _packages(name: str) -> Path | None:
    folder = os.environ.get(PACKAGES)
    return Path(folder) / name if folder and (Path(folder) / name).is_dir() else None


def _last_line(ended: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in ended.stderr.splitlines() if "Error" in line]
    return lines[0].strip() if lines else f"exit status {ended.returncode}"


def main(arguments: Sequence[str]) -> int:
    """Run the tutorials that are named, or all; returns 1 where one fails."""
    if arguments[:1] == ["--prepare"]:
        PREPARE[arguments[1]]()
        return 0
    failures = 0
    for name in arguments or TUTORIALS:
        reason = missing(name)
        if reason:
            print(f"{name}: not run: {reason}")
            continue
        outcome = run_tutorial(name)
        failures += not outcome.passed
        told = outcome.problem or f"device {outcome.figures}, CPU {outcome.expected}"
        print(f"{name}: {'passed' if outcome.passed else 'FAILED'}: {told}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
