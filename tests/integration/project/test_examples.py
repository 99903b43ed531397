"""The examples as a user runs them: on the host and on the device, eager and compiled."""

import os
import re
import subprocess
import sys

import pytest

from tests.integration.project.checkout import ROOT

# Small enough for a few seconds each; large enough that the loss falls.
SMALL = {
    "train_transformer": "--steps 8 --batch 4 --length 32 --width 64 --layers 2",
    "train_convnet": "--steps 6 --batch 4 --size 16 --channels 8",
    "train_lstm": "--steps 8 --batch 4 --length 8 --width 16",
    "train_llama": "--steps 4 --batch 2 --length 16 --width 64",
}
RELATIVE_TOLERANCE = 1e-4
QUICK = ("train_transformer", "train_convnet")
NAMES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in SMALL]


def losses(name, *options, device="cpu"):
    """The losses that an example prints, one a step."""
    command = [
        sys.executable,
        ROOT / f"examples/{name}.py",
        "--device",
        device,
        *SMALL[name].split(),
        *options,
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    found = [
        float(re.fullmatch(rf"step {step}  loss (\d+\.\d+)", line)[1]) for step, line in enumerate(lines)
    ]
    assert found
    return found


@pytest.fixture(scope="module")
def host_losses():
    """Losses on the host by example, computed once."""
    return {}


def expected(host_losses, name):
    if name not in host_losses:
        host_losses[name] = losses(name)
    return host_losses[name]


def test_every_example_is_tested():
    assert {path.stem for path in (ROOT / "examples").glob("train_*.py")} == set(SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_learns_on_the_host(name, host_losses):
    found = expected(host_losses, name)
    assert found[-1] < found[0]


@pytest.mark.parametrize("options", [(), ("--compile",)], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", NAMES)
def test_an_example_computes_the_same_on_the_device(name, options, host_losses):
    assert losses(name, *options, device="neuron") == pytest.approx(
        expected(host_losses, name), rel=RELATIVE_TOLERANCE
    )


@pytest.mark.parametrize("name", SMALL)
def test_no_example_imports_ours(name):
    assert "import neuron" not in (ROOT / f"examples/{name}.py").read_text()


def test_the_transformer_runs_in_bfloat16():
    assert losses("train_transformer", "--dtype", "bfloat16", device="neuron")[-1] > 0


def test_the_default_device_is_the_simulated_one():
    code = "import runpy; print(runpy.run_path('examples/train_transformer.py')['default_device']())"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.strip() == "neuron"
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert result.stdout.strip() == "cpu"
