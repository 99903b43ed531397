import pytest

from neuron_tools.frontends.jax.operation_path import OperationPath, parse


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("jit(step)/dot_general", OperationPath("step", "dot_general", False)),
        ("jit(step)/jvp(mlp)/dot_general", OperationPath("step.mlp", "dot_general", False)),
        ("jit(step)/transpose(jvp(mlp))/dot_general", OperationPath("step.mlp", "dot_general", True)),
        ("jit(step)/jvp(jit(inner))/sin", OperationPath("step.inner", "sin", False)),
        ("jit(f)/while/body/closed_call/cell/tanh", OperationPath("f.cell", "tanh", False)),
        ("jit(f)/vmap(jvp(block/attention))/exp", OperationPath("f.block.attention", "exp", False)),
        ("jit(f)/checkpoint/rematted_computation/mul", OperationPath("f", "mul", False, True)),
        ("jit(f)/cond/branch_1_fun/add", OperationPath("f", "add", False)),
        ("jit(f)/transpose(jvp())/mul", OperationPath("f", "mul", True)),
        ("jit(f)/jit(shmap_body)/mlp/psum", OperationPath("f.mlp", "psum", False)),
        ("jit(<lambda>)/add", OperationPath("<lambda>", "add", False)),
        ("jit(f)", OperationPath("f", "", False)),
        ("", OperationPath("", "", False)),
    ],
)
def test_names_as_jax_writes_them(path, expected):
    assert parse(path) == expected
