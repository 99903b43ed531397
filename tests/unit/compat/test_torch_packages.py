"""`torch_neuronx` and `torch_neuron` as programs written for AWS's packages use them."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from neuron_tools import compat
from neuron_tools.errors import NeuronToolsError
from neuron_tools.neff import read_neff


@pytest.fixture(scope="module")
def packages():
    uninstall = compat.install()
    import torch_neuron
    import torch_neuronx

    yield torch_neuron, torch_neuronx
    uninstall()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


TOKENS = torch.tensor([[1, 2, 7]])


def kinds(script):
    return [node.kind() for node in script.inlined_graph.nodes()]


def test_the_newer_one_compiles_the_whole_model(packages):
    script = packages[1].trace(network(), TOKENS)
    assert not [kind for kind in kinds(script) if kind.startswith("aten::")]
    torch.testing.assert_close(script(TOKENS), network()(TOKENS).detach())


def test_the_older_one_leaves_look_ups_to_the_cpu(packages):
    script = packages[0].trace(network(), TOKENS)
    assert [kind for kind in kinds(script) if kind.startswith("aten::")] == ["aten::embedding"]
    torch.testing.assert_close(script(TOKENS), network()(TOKENS).detach())


def test_without_fallback_the_older_one_compiles_everything(packages):
    assert "aten::embedding" not in kinds(packages[0].trace(network(), TOKENS, fallback=False))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + 1


@pytest.mark.parametrize(
    ("chooses", "on_cpu"),
    [
        (lambda node: "Scaled" in node.name, {"aten::mul"}),
        (lambda node: "Scaled" not in node.name or node.type_string != "aten::relu", {"aten::relu"}),
        (lambda node: True, set()),
    ],
)
def test_a_program_chooses_what_runs_on_the_device_by_module_and_operator(packages, chooses, on_cpu):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Scaled()

        def forward(self, x):
            return self.layer(x) * 100

    model, x = Model().eval(), torch.ones(2, 4)
    script = packages[0].trace(model, x, subgraph_builder_function=chooses, minimum_segment_size=1)
    assert {kind for kind in kinds(script) if kind.startswith("aten::")} == on_cpu
    torch.testing.assert_close(script(x), model(x).detach())


def test_a_model_without_device_operations_is_refused_unless_allowed(packages):
    table = nn.Embedding(8, 4)
    with pytest.raises(NeuronToolsError, match="No operation of Embedding"):
        packages[0].trace(table, TOKENS)
    script = packages[0].trace(table, TOKENS, allow_no_ops_on_neuron=True)
    torch.testing.assert_close(script(TOKENS), table(TOKENS))


def test_a_partitioner_decides_what_the_newer_one_leaves_to_the_cpu(packages):
    config = packages[1].PartitionerConfig(ops_to_partition={"aten::relu"})
    script = packages[1].trace(network(), TOKENS, partitioner_config=config)
    assert kinds(script).count("neuron_tools::execute") == 2


def test_compiler_options_reach_the_archive(packages, tmp_path, monkeypatch):
    monkeypatch.setenv("NEURON_CC_FLAGS", "--auto-cast=all --target=trn1")
    packages[1].trace(
        network(), TOKENS, compiler_workdir=str(tmp_path), compiler_args=["--auto-cast", "matmult"]
    )
    neff = read_neff(tmp_path / "graph.neff")
    assert (neff.options["auto_cast"], neff.program.target) == ("matmult", "trn1")


def test_a_saved_model_needs_only_the_import(packages, tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.save(packages[1].trace(network(), TOKENS), path)
    program = tmp_path / "run.py"
    program.write_text(
        "import torch, torch_neuronx\n"
        f"print(torch.jit.load({str(path)!r})(torch.tensor([[1, 2, 7]])).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "neuron_tools", program], capture_output=True, text=True, check=True
    )
    torch.testing.assert_close(torch.tensor(eval(done.stdout)), network()(TOKENS).detach())


def test_torch_neuron_has_the_names_of_inferentia_1_before_its_package_is_imported():
    before = dict(vars(torch.neuron))
    for name in compat.TORCH_NEURON:
        vars(torch.neuron).pop(name, None)
    try:
        compat.autoload()
        assert torch.neuron.analyze_model(torch.nn.ReLU(), torch.ones(2)) == {}
    finally:
        vars(torch.neuron).update(before)
