"""Weights that stay in SBUF: not loaded, in places of their own, and nothing spills for them."""

import numpy as np
import pytest
import torch
from torch import nn

from neuron_tools import hardware
from neuron_tools.compiler import CompilerOptions, compile_module
from neuron_tools.frontends.torch_compile.graph_lowering import lower_graph
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_trace.exported import export_model
from neuron_tools.records.program import Memory, Purpose
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races

CORE = hardware.get("inf1")
TOKENS, WIDTH, INNER, LAYERS = 128, 768, 3072, 3
WEIGHT_BYTES = LAYERS * 2 * WIDTH * INNER * 2
HALF_OF_SBUF = CORE.sbuf_partitions * CORE.sbuf_bytes_per_partition // 2


@pytest.fixture(scope="module")
def module():
    """The feed-forward parts of three layers of BERT-base."""
    torch.manual_seed(0)
    parts = [
        part
        for _ in range(LAYERS)
        for part in (nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH), nn.LayerNorm(WIDTH))
    ]
    inputs = torch.zeros(TOKENS, WIDTH)
    exported = export_model(nn.Sequential(*parts).eval(), (inputs,))
    values = [StoredTensor.of(value) for value in (*exported.weights, inputs)]
    kinds = ["weight"] * len(exported.weights) + ["input"]
    names = [*exported.weight_names, "input"]
    graph = exported.graph_module.graph
    return lower_graph(graph, values, "model", parameter_kinds=kinds, parameter_names=names)


def compiled(module, resident_bytes):
    return compile_module(
        module,
        CORE,
        CompilerOptions(auto_cast="all", inline_weights=True, resident_weight_bytes=resident_bytes),
    )


def moved(program, purpose):
    return int(program.dmas["bytes"][program.dmas["purpose"] == purpose].sum())


@pytest.fixture(scope="module")
def program(module):
    return compiled(module, HALF_OF_SBUF)


def test_weights_stay_piece_by_piece_until_their_room_is_full(module, program):
    left = moved(compiled(module, 0), Purpose.WEIGHT) - moved(program, Purpose.WEIGHT)
    assert 0.85 * HALF_OF_SBUF < left <= HALF_OF_SBUF * 1.2  # rows that all partitions read are kept once
    assert left < WEIGHT_BYTES


def test_what_comes_and_goes_takes_no_place_of_a_weight_that_stays(program):
    tiles = program.tiles[program.tiles["memory"] == Memory.SBUF]
    ends = tiles["address"].astype(int) + tiles["bytes_per_partition"]
    stays = tiles["address"] >= CORE.sbuf_bytes_per_partition // 2
    order = np.argsort(tiles["address"][stays])
    assert stays.any()
    assert ends.max() <= CORE.sbuf_bytes_per_partition
    assert ends[~stays].max() <= CORE.sbuf_bytes_per_partition // 2
    assert (tiles["address"][stays][order][1:] >= ends[stays][order][:-1]).all()
    assert tile_races(program, CORE) == 0


def test_rows_stay_on_chip_where_a_weight_is_met_in_parts(program):
    assert moved(program, Purpose.SPILL_SAVE) == 0


def test_a_request_is_quicker_with_weights_that_stay(module, program):
    assert simulate(program, CORE).duration_ps < 0.9 * simulate(compiled(module, 0), CORE).duration_ps
