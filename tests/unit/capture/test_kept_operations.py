"""PyTorch's own operations are compiled and simulated once for all processes."""

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.capture.timed_run import NoDefinitions, UnkeptExecutables
from neuron_tools.compiler.cached import operation_key
from neuron_tools.compiler.options import CompilerOptions

pytest.importorskip("torch_mlir")

import torch

from neuron_tools.frontends.torch_eager import operation

TENSOR = ("tensor", "float32", (64, 128), (128, 1), 0, True)
ADD = ("aten::add.Tensor", (TENSOR, TENSOR, 1))


class Process:
    """What one process makes of operations.

    Attributes:
        made: Its executables.
        lowered: Names of the operators that it lowered.
    """

    def __init__(self, folder, monkeypatch, target="trn2"):
        core = hardware.get(target)
        definitions = NoDefinitions(folder)
        self.store = UnkeptExecutables(folder, core, definitions, keep_compile_time=False)
        self.made, self.lowered = [], []
        self.store.on_executable.append(self.made.append)
        self._monkeypatch = monkeypatch

    def run(self, name, arguments):
        lower = operation.lower_operation

        def count(name, arguments):
            self.lowered.append(name)
            return lower(name, arguments)

        with self._monkeypatch.context() as patch:
            patch.setattr(operation, "lower_operation", count)
            return self.store.for_operation(name, arguments)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def new_process(tmp_path, monkeypatch, cache):
    folders = iter(tmp_path / f"process{number}" for number in range(9))

    def start(**settings):
        folder = next(folders)
        folder.mkdir()
        return Process(folder, monkeypatch, **settings)

    return start


def test_a_second_process_finds_what_the_first_made(new_process):
    first, second = new_process(), new_process()
    assert first.run(*ADD) == second.run(*ADD)
    assert (first.lowered, second.lowered) == ([ADD[0]], [])
    (made,), (found,) = first.made, second.made
    assert (
        (found.number, found.name, found.kind) == (made.number, made.name, made.kind) == (1, ADD[0], "eager")
    )
    for one, other in zip(made.of_cores, found.of_cores, strict=True):
        assert one.program.hlo == other.program.hlo
        assert one.program.framework == other.program.framework
        np.testing.assert_array_equal(one.program.instructions, other.program.instructions)
        np.testing.assert_array_equal(one.simulation.end_ps, other.simulation.end_ps)


def test_an_operation_without_a_lowering_is_told_from_the_cache_too(new_process):
    call = ("aten::linalg_eig", (("tensor", "float32", (8, 8), (8, 1), 0, True),))
    answers = [new_process().run(*call) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0][2] != new_process().run(*ADD)[2]


@pytest.mark.parametrize("differs", ["shape", "target"])
def test_another_is_made_for_itself(differs, new_process):
    new_process().run(*ADD)
    other = ("tensor", "float32", (128, 128), (128, 1), 0, True) if differs == "shape" else TENSOR
    process = new_process(target="trn1" if differs == "target" else "trn2")
    process.run(ADD[0], (other, other, 1))
    assert process.lowered == [ADD[0]]


def test_operators_of_other_libraries_are_lowered_in_each_process(new_process):
    call = ("torchvision::roi_align", (TENSOR,))
    for process in (new_process(), new_process()):
        process.run(*call)
        assert process.lowered == [call[0]]


def test_where_the_program_takes_an_operator_apart_its_own_way_nothing_is_kept_or_found(
    new_process, cache, monkeypatch
):
    table = torch._decomp.global_decomposition_table["post_autograd"]
    new_process().run(*ADD)
    monkeypatch.setitem(table, torch.ops.aten.mish.default, lambda tensor: tensor * 2 + 1)
    for call in (ADD, ("aten::mish", (TENSOR,))):
        process = new_process()
        process.run(*call)
        assert process.lowered == [call[0]]
    assert len(list(cache.iterdir())) == 1


def test_a_damaged_file_is_made_anew(new_process, cache):
    new_process().run(*ADD)
    (file,) = cache.glob("OPERATION_*/executable.npz")
    file.write_bytes(file.read_bytes()[:-400])
    for lowered in ([ADD[0]], []):
        process = new_process()
        process.run(*ADD)
        assert process.lowered == lowered


def test_other_versions_of_what_lowers_are_other_keys(monkeypatch):
    core, options = hardware.get("trn2"), CompilerOptions()
    before = operation_key(ADD, core, options)
    monkeypatch.setattr("neuron_tools.compiler.cached._versions", lambda: ("3.0", "", "", "", ""))
    assert operation_key(ADD, core, options) != before


def test_without_a_cache_each_process_lowers(new_process, monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", "off")
    for process in (new_process(), new_process()):
        process.run(*ADD)
        assert process.lowered == [ADD[0]]
