"""What libraries import of AWS's closed packages can be imported and named, and says what it is when used."""

import pytest
import torch

from neuron_tools import compat
from neuron_tools.compat.absent import AbsentError


@pytest.fixture
def names():
    uninstall = compat.install()
    yield
    uninstall()


def test_a_closed_part_can_be_named_and_says_that_it_is_not_there(names):
    from torch_neuronx.pyhlo import xla_data_pb2
    from torch_neuronx.xla_impl.trace import get_compile_command

    assert "ShapeProto" in repr(xla_data_pb2.ShapeProto)
    with pytest.raises(AbsentError, match=r"get_compile_command is not there: .* use torch_neuronx\.trace"):
        get_compile_command()


def test_a_kernel_for_tpus_can_be_imported_and_says_what_to_call_instead(names):
    from torch_xla.experimental.custom_kernel import flash_attention

    with pytest.raises(AbsentError, match=r"written in Pallas for TPUs; call .*scaled_dot_product_attention"):
        flash_attention()


def test_a_group_of_ranks_is_a_ring(names):
    from neuronxcc.nki._private_kernels.collectives import CollectivesConfig

    config = CollectivesConfig(replica_groups=[[0, 2], [1, 3]])
    assert config.rank_src_tgt_pairs[3] == [(1, 3), (3, 1)]


def test_options_of_closed_kernels_can_be_made_without_them(names):
    from neuronxcc.nki._private_kernels.blockwise_mm import SkipMode

    assert SkipMode(True, False) == SkipMode(skip_token=True)


def test_a_closed_kernel_can_be_decorated_and_says_that_it_is_not_there_when_it_is_called(names):
    from neuronxcc.nki._private_kernels.attention import attention_isa_kernel
    from torch_neuronx.xla_impl.custom_call_targets import AwsNeuronErf
    from torch_neuronx.xla_impl.ops import nki_jit

    assert "AwsNeuronErf" in repr(AwsNeuronErf)
    kernel = nki_jit()(attention_isa_kernel)
    with pytest.raises(AbsentError, match=r"attention_isa_kernel is not there: .* kernels are closed"):
        kernel[2](None)
    with pytest.raises(TypeError, match="cannot be iterated over"):
        list(kernel)


def test_an_optimizer_of_syncfree_is_found_in_its_own_module(names):
    from torch_xla.amp import syncfree
    from torch_xla.amp.syncfree.adamw import AdamW

    assert AdamW is syncfree.AdamW is torch.optim.AdamW


def test_names_of_operations_need_no_block_of_their_own(names):
    from torch_neuronx.experimental.profiler.v2_x.custom_op_name import hlo_debug

    with hlo_debug(add_var_names=True):
        pass


def test_the_platform_is_that_of_the_options_or_the_device(names, monkeypatch):
    from torch_neuronx.utils import get_platform_target

    assert get_platform_target("--target=trn1") == "trn1"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2")
    assert get_platform_target() == "inf2"


def test_programs_can_turn_the_compilers_messages_off(names):
    import logging

    import neuronxcc  # noqa: F401  # gives logging its level

    logging.disable(logging.OFF)
    try:
        assert not logging.getLogger("neuronxcc").isEnabledFor(logging.CRITICAL)
        assert logging.getLevelName(logging.OFF) == "OFF"
    finally:
        logging.disable(logging.NOTSET)


def test_the_compilers_command_is_a_function_too(names, monkeypatch, capsys):
    from neuronxcc.driver.CommandDriver import main

    monkeypatch.setattr("sys.argv", ["neuronx-cc"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "usage: neuronx-cc compile" in capsys.readouterr().err


def test_transformers_neuronx_is_imported_and_says_at_its_first_use_what_to_call_instead(names):
    import torch_neuronx
    from neuronxcc.nki.kernels.attention import flash_fwd
    from torch_neuronx.proto.metaneff_pb2 import MetaTensor
    from torch_neuronx.pyhlo.constant.serialize_torch import serialize_torch
    from torch_neuronx.pyhlo.scribe import HloScribe

    assert "FLOAT" in repr(MetaTensor.DataType.FLOAT)
    assert "flash_fwd" in repr(flash_fwd)
    torch.ops.neuron._init_neuron()
    for absent in (HloScribe, serialize_torch):
        with pytest.raises(AbsentError, match=r"HLO files for AWS's compiler; serve the model by"):
            absent(None)
    with pytest.raises(AbsentError, match=r"_parallel_to_neuron is not there: .* neuronx-distributed-inf"):
        torch.ops.neuron._parallel_to_neuron([torch.ones(1)])
    assert torch_neuronx.__version__
