"""Donated arguments of computations that XLA partitions, compiled for two CPU devices."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

from neuron_tools.frontends.jax import partitioning
from neuron_tools.frontends.jax.computation import Computation

ROWS = 'mhlo.sharding = "{devices=[2,1]0,1}"'
MODULE = """
module @step attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func public @main(%old: tensor<8x4xf32> {{{old}}}, %new: tensor<8x4xf32> {{{new}}})
      -> (tensor<f32>, tensor<8x4xf32>) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.add %old, %new : tensor<8x4xf32>
    %all = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    return %all, %sum : tensor<f32>, tensor<8x4xf32>
  }}
}}
"""


def computation(old, new=ROWS):
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    client, options = partitioning._client(2), partitioning._options(2, [True, True])
    devices = xla_client.DeviceList(tuple(client.devices()))
    with mlir.make_ir_context():
        module = ir.Module.parse(MODULE.format(old=old, new=new))
        whole = mlir.module_to_bytecode(module)
        _, made = Computation.compiled(
            module, options, lambda: client.compile_and_load(whole, devices, options)
        )
    return made


@pytest.mark.parametrize("donated", ["tf.aliasing_output = 1 : i32", "jax.buffer_donor = true"])
def test_a_donated_argument_is_the_memory_of_a_result(donated):
    assert computation(f"{ROWS}, {donated}").lower().aliases == ((1, 0),)
    assert computation(ROWS, f"{ROWS}, {donated}").lower().aliases == ((1, 1),)


def test_a_result_takes_one_arguments_memory():
    donor = f"{ROWS}, jax.buffer_donor = true"
    assert computation(donor, donor).lower().aliases == ((1, 0),)
    assert computation(donor, f"{ROWS}, tf.aliasing_output = 1 : i32").lower().aliases == ((1, 1),)


def test_no_result_is_the_memory_of_what_is_kept():
    assert computation(ROWS).lower().aliases == ()
