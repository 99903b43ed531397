"""What a process keeps of the models that it traced."""

import gc

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from neuron_tools import hardware
from neuron_tools.compiler import CompilerOptions
from neuron_tools.frontends.torch_trace.graph_files import graph_bytes, trace_of
from neuron_tools.frontends.torch_trace.ranked_program import trace_ranks


def test_a_model_that_is_gone_leaves_its_graph_and_no_weights():
    model = nn.Linear(4, 3)
    weight = StorageWeakRef(model.weight.untyped_storage())
    data = graph_bytes(trace_ranks(model, (torch.ones(2, 4),)))
    del model
    gc.collect()
    assert weight.expired()
    trace = trace_of(data)
    assert trace.state_and_weight_shapes == ["float32[3,4]", "float32[3]"]
    assert trace.compiled(hardware.get("trn2"), CompilerOptions(), None).program.name == "Linear"
