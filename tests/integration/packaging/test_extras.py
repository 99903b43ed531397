"""Each extra alone, as a user installs it: the README's commands on real data, the page in a real browser."""

import json
import re
import shlex
import shutil
import subprocess
from contextlib import closing, contextmanager
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from tests.browser.timeline_page import wait_until_still
from tests.fixtures.neuron_sysfs import TRAINIUM2, SysfsTree
from tests.integration.project.checkout import ROOT

EXTRAS = ("profile", "torch", "jax", "nki", "explorer", "monitor", "cluster", "all")
SMALL = "--steps 1 --batch 2 --length 16 --width 32 --layers 1"
# Whoever has one of these has them all, so what must not be imported by an extra is known by name.
FRAMEWORKS = {"torch", "torch-mlir", "jax", "jaxlib", "ml-dtypes"}

TORCH_SCRIPT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to("neuron")
step = torch.compile(model)
for x in torch.randn(2, 16, 32, device="neuron"):
    model(x).sum().backward()
    step(x).sum().item()
"""
JAX_SCRIPT = """
import jax, jax.numpy as jnp
x = jnp.ones((32, 32))
assert float(jax.jit(lambda a: jnp.tanh(a @ a).sum())(x)) == 1024
"""
NKI_SCRIPT = """
import numpy as np
from neuron_tools import compat
compat.install()
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=result, src=tile)
    return result

a = np.ones((128, 64), np.float32)
assert (np.asarray(double(a)) == 2).all()
"""
IMPORT_ALL = """
import importlib, pkgutil, sys
for package in map(importlib.import_module, sys.argv[1:]):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
OPEN_IT = """
import neuron_tools
with neuron_tools.open_profile("run.nprof") as profile:
    assert profile.summary()["total_time"] > 0
    assert len(profile.sql("SELECT layer, sum(duration_ns) AS ns FROM Instruction GROUP BY layer").fetchall())
"""


def readme_commands():
    """The README's commands on a profile, in order; those that capture or open a browser are tested apart."""
    lines = re.findall(r"^neuron-profile .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    commands = [shlex.split(line, comments=True) for line in lines]
    return [
        command
        for command in commands
        if command[1] != "capture" and command != ["neuron-profile", "view", "run.nprof"]
    ]


def capture(environment, folder, script, name="run.nprof"):
    (folder / "script.py").write_text(script)
    environment.run("neuron-profile", "capture", "-o", name, "--", "python", "script.py", cwd=folder)
    return folder / name


@pytest.fixture(scope="module")
def profile(environment, tmp_path_factory):
    """A profile that was captured with the extra `torch` alone."""
    return capture(environment("torch"), tmp_path_factory.mktemp("captured"), TORCH_SCRIPT)


@pytest.fixture
def folder(profile, tmp_path):
    """A folder with the two profiles that the README's commands name."""
    for name in ("run.nprof", "base.nprof"):
        shutil.copytree(profile, tmp_path / name)
    return tmp_path


def read_profiles(environment, folder):
    """What the README does with a profile once it is there."""
    for command in readme_commands():
        environment.run(*command, cwd=folder)
    environment.run(environment.python, "-c", OPEN_IT, cwd=folder)
    environment.run("neuron-profile", "verify", "run.nprof", cwd=folder)


@pytest.mark.parametrize("extra", EXTRAS)
def test_only_what_the_extra_asks_for_is_there(environment, extra):
    bare = environment(extra)
    wanted = {"torch": {"torch", "torch-mlir", "ml-dtypes"}, "jax": {"jax", "jaxlib", "ml-dtypes"}}
    wanted |= {"nki": {"ml-dtypes"}, "all": FRAMEWORKS}
    assert bare.packages & FRAMEWORKS == wanted.get(extra, set())
    assert "pytest" not in bare.packages


@pytest.mark.parametrize("extra", EXTRAS)
def test_packages_import_and_commands_explain_themselves(environment, extra, tmp_path):
    bare = environment(extra)
    names = "neuron_tools, neuron_profile, neuron_explorer, neuron_monitor"
    bare.run(bare.python, "-c", f"import {names}", cwd=tmp_path)
    usual = [] if extra == "monitor" else ["neuron-profile", "neuron-explorer"]
    for command in [*usual, "neuron-monitor", "neuron-ls"]:
        assert "Usage:" in bare.run(command, "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("extra", "packages"),
    [
        ("profile", ["neuron_profile.commands", "neuron_profile.analysis", "neuron_profile.reports"]),
        ("explorer", ["neuron_explorer"]),
        ("monitor", ["neuron_monitor"]),
    ],
)
def test_every_module_of_a_tool_imports_with_its_extra_alone(environment, extra, packages, tmp_path):
    bare = environment(extra)
    bare.run(bare.python, "-c", IMPORT_ALL, *packages, cwd=tmp_path)


def test_the_readme_names_what_is_tested():
    assert {command[1] for command in readme_commands()} >= {"view", "query", "advise", "whatif", "diff"}


@pytest.mark.parametrize("extra", ["profile"])
def test_profiles_are_read(environment, extra, folder):
    read_profiles(environment(extra), folder)


def test_ranks_are_read_on_a_cluster(environment, folder):
    command = ["neuron-profile", "ranks", "run.nprof", "base.nprof", "--engine", "dask", "--json"]
    assert json.loads(environment("cluster").run(*command, cwd=folder).stdout)


def test_jax_is_captured(environment, tmp_path):
    assert capture(environment("jax"), tmp_path, JAX_SCRIPT).is_dir()


def test_kernels_are_captured(environment, tmp_path):
    assert capture(environment("nki"), tmp_path, NKI_SCRIPT).is_dir()


def test_the_readmes_captures_work_and_are_compared(environment, tmp_path):
    bare = environment("all")
    bare.run("neuron-profile", "examples", cwd=tmp_path)
    for line in re.findall(r"^neuron-profile capture .*$", (ROOT / "README.md").read_text(), re.MULTILINE):
        bare.run(*shlex.split(line), *SMALL.split(), cwd=tmp_path)
    (compare,) = (command for command in readme_commands() if command[1] == "diff")
    bare.run(*compare, cwd=tmp_path)
    for profile in compare[2:]:
        bare.run("neuron-profile", "verify", profile, cwd=tmp_path)


@contextmanager
def served(environment, *command, cwd):
    """A server of an environment; gives the address that it prints."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if found := re.search(r"http://\S+", line):
                    yield found[0].rstrip(".,")
                    break
            else:
                pytest.fail("".join(lines))
        finally:
            process.kill()


@pytest.mark.browser
@pytest.mark.parametrize("command", ["neuron-explorer run.nprof -p 0 --no-browser"])
def test_the_timeline_opens_in_a_browser(environment, folder, chromium, command):
    bare = environment("explorer")
    program, *arguments = command.split()
    with (
        served(bare, bare.folder / "bin" / program, *arguments, cwd=folder) as address,
        closing(chromium.new_page()) as page,
    ):
        page.goto(address)
        page.goto(re.match(r"http://[^/]+/", address)[0] + "timeline")
        wait_until_still(page)
        assert page.locator(".nt-stage canvas").count()


def test_devices_are_watched(environment, tmp_path):
    bare = environment("monitor")
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2, 2)
    options = ["--sysfs-root", tree.root]
    report = bare.run("neuron-monitor", *options, "--period", "20ms", "--count", "2", cwd=tmp_path).stdout
    assert json.loads(report.splitlines()[-1])["neuron_hardware_info"]["neuron_device_count"] == 2
    bare.run("neuron-ls", *options, "-j", cwd=tmp_path)
    bare.run("neuron-top", "--help", cwd=tmp_path)
    command = [bare.folder / "bin" / "neuron-monitor", "prometheus", "--port", "0", *options]
    with (
        served(bare, *command, cwd=tmp_path) as address,
        build_opener(HTTPCookieProcessor()).open(address) as answer,
    ):
        assert b"neuron" in answer.read()
    command = [bare.folder / "bin" / "neuron-monitor", "dashboard", "-p", "0", *options]
    with (
        served(bare, *command, cwd=tmp_path) as address,
        build_opener(HTTPCookieProcessor()).open(address) as answer,
    ):
        assert answer.status == 200
