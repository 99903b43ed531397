import pytest

from neuron_tools.profile.derive.summary import SETUP_OPCODES
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.schema import TABLES
from tests.unit.profile.builders import METADATA_ROW, dma, instruction, level, write_profile

S = 1e-9


def summary(tmp_path, tables):
    with open_profile(write_profile(tmp_path / "p", tables)) as profile:
        return profile.summary()


def expect(found, **metrics):
    assert {name: found[name] for name in metrics} == pytest.approx(metrics)


def test_total_time_runs_from_the_first_to_the_last_device_span(tmp_path):
    tables = {
        "Instruction": [
            instruction("Sync", 100, 110, "EVENT_SEMAPHORE"),
            instruction("Tensor", 200, 300),
            instruction("Vector", 250, 350, "TENSOR_TENSOR"),
        ],
        "DmaPacketAggregated": [dma(500, 1100)],
    }
    expect(
        summary(tmp_path, tables),
        total_time=1000 * S,
        neuroncore_cycle_count=2000,
        total_exec_time=900 * S,
        total_active_time=760 * S,
        total_active_time_percent=0.76,
    )


@pytest.mark.parametrize("opcode", SETUP_OPCODES)
def test_setting_up_is_no_execution(tmp_path, opcode):
    rows = [instruction("Sync", 0, 10, opcode), instruction("Tensor", 50, 80)]
    expect(summary(tmp_path, {"Instruction": rows}), total_exec_time=30 * S, total_time=80 * S)


def test_engines_have_time_activity_and_count(tmp_path):
    rows = [
        instruction("Tensor", 0, 60),
        instruction("Tensor", 40, 100, "LDWEIGHTS"),
        instruction("Scalar", 0, 10, "ACTIVATE"),
        instruction("Scalar", 10, 30, "ACT_TABLE_LOAD"),
    ]
    expect(
        summary(tmp_path, {"Instruction": rows}),
        tensor_engine_instruction_time=120 * S,
        tensor_engine_active_time=100 * S,
        tensor_engine_active_time_percent=1.0,
        tensor_engine_instruction_count=2,
        matmul_instruction_count=1,
        scalar_engine_active_time_percent=0.3,
        activate_instruction_count=1,
        activate_instruction_time=10 * S,
        gpsimd_engine_instruction_count=0,
        gpsimd_engine_active_time=0.0,
    )


def test_cores_share_the_peak(tmp_path):
    rows = [instruction("Tensor", 0, 100, raw_flops=10_000, pcore_idx=core) for core in (0, 1)]
    # Two cores of 200 GFLOPS for 100 ns: 40,000 operations; both active all the time.
    expect(
        summary(tmp_path, {"Instruction": rows}),
        hfu_estimated_percent=0.5,
        tensor_engine_active_time_percent=1,
    )


def test_physical_cores_of_a_logical_core_count_even_when_idle(tmp_path):
    tables = {
        "Metadata": [{**METADATA_ROW, "num_physical_cores": 2}],
        "Instruction": [instruction("Tensor", 0, 100, raw_flops=10_000)],
        "DmaPacketAggregated": [dma(0, 100, 1000)],
    }
    # One HBM stack of 100 GB/s: 10,000 bytes.
    expect(summary(tmp_path, tables), hfu_estimated_percent=0.25, mbu_estimated_percent=0.1)


def test_flops_and_the_roofline(tmp_path):
    tables = {
        "Instruction": [
            instruction(
                "Tensor", 0, 100, raw_flops=8000, flops_transpose=2000, adjusted_flops=32_000,
                adjusted_flops_transpose=8000,
            )
        ],
        "DmaPacketAggregated": [dma(0, 50, 3000), dma(0, 50, 1000, "SBUF", "HBM")],
    }  # fmt: skip
    expect(
        summary(tmp_path, tables),
        hardware_flops=8000,
        transpose_flops=2000,
        adjusted_hardware_flops=32_000,
        adjusted_transpose_flops=8000,
        model_flops=0,
        mm_arithmetic_intensity=1.5,
        peak_flops_bandwidth_ratio=2.0,
        hfu_estimated_percent=0.4,
        mfu_inst_estimated_percent=0.3,
        mfu_inst_max_achievable_estimated_percent=0.75,
        mfu_hlo_estimated_percent=0.0,
        mfu_estimated_percent=0.3,
        mfu_max_achievable_estimated_percent=0.75,
        mbu_estimated_percent=0.4,
    )


def test_the_models_flops_are_preferred_where_they_are_known(tmp_path):
    tables = {
        "Instruction": [instruction("Tensor", 0, 100, raw_flops=8000)],
        "HloInstruction": [level("HloInstruction", 0, 100, 1, model_flops=4000)],
        "DmaPacketAggregated": [dma(0, 50, 1000)],
    }
    expect(
        summary(tmp_path, tables),
        model_flops=4000,
        mfu_hlo_estimated_percent=0.2,
        mfu_inst_estimated_percent=0.4,
        mfu_estimated_percent=0.2,
        mfu_max_achievable_estimated_percent=1.0,
    )


def test_bytes_by_memory_and_purpose(tmp_path):
    tables = {
        "Instruction": [
            instruction(
                "Vector", 0, 9, sbuf_read_bytes=5, sbuf_write_bytes=6, psum_read_bytes=7, psum_write_bytes=8
            ),
            instruction("Scalar", 0, 9, psum_read_sbuf_write_bytes=3),
            instruction("Sync", 0, 9, "DMA_TRIGGER", sbuf_write_bytes=100, hbm_read_bytes=100),
        ],
        "DmaPacketAggregated": [
            dma(0, 1, 100),
            dma(1, 2, 200, "SBUF", "HBM", op="spill_save", queue_type="output"),
            dma(2, 3, 300, "HBM", "SBUF", op="spill_reload", queue_type="data"),
            dma(3, 4, 400, "HOST", "HBM"),
        ],
    }
    expect(
        summary(tmp_path, tables),
        hbm_read_bytes=400,
        hbm_write_bytes=200,
        sbuf_read_bytes=205,
        sbuf_write_bytes=406,
        psum_read_bytes=7,
        psum_write_bytes=8,
        psum_read_sbuf_write_bytes=3,
        psum_read_sbuf_write_count=1,
        spill_save_bytes=200,
        spill_reload_bytes=300,
        input_queue_bytes=500,
        output_queue_bytes=200,
        weight_queue_bytes=300,
    )


def test_instructions_tell_bytes_where_transfers_do_not(tmp_path):
    tables = {
        "Instruction": [instruction("Sync", 0, 9, hbm_read_bytes=70, hbm_write_bytes=30)],
        "DmaPacketAggregated": [dma(0, 5, 100, "unknown", "unknown")],
    }
    expect(summary(tmp_path, tables), hbm_read_bytes=70, hbm_write_bytes=30)


def test_transfers_and_their_packets(tmp_path):
    tables = {
        "DmaPacketAggregated": [
            dma(0, 40, 300, packet_count=3, packet_time_ns=90),
            dma(20, 60, 100, packet_count=1, packet_time_ns=40, queue_name="q2"),
        ]
    }
    expect(
        summary(tmp_path, tables),
        dma_active_time=60 * S,
        dma_active_cycles=120,
        dma_active_time_percent=1.0,
        dma_packet_time=130 * S,
        dma_transfer_time=80 * S,
        dma_transfer_count=2,
        dma_transfer_total_bytes=400,
        dma_transfer_average_bytes=200,
        dma_queue_count=2,
        static_dma_packet_count=4,
    )


def test_static_and_dynamic_parts_are_fractions_of_the_dma_activity(tmp_path):
    tables = {
        "Instruction": [instruction("Tensor", 0, 1000)],
        "DmaPacketAggregated": [
            dma(0, 60, 600),
            dma(60, 90, 300, queue_type="software_dynamic"),
            dma(80, 100, 100, queue_type="hardware_dynamic"),
        ],
    }
    expect(
        summary(tmp_path, tables),
        dma_active_time_percent=0.1,
        static_dma_active_time=60 * S,
        static_dma_active_time_percent=0.6,
        dynamic_dma_active_time_percent=0.4,
        software_dynamic_dma_active_time_percent=0.3,
        hardware_dynamic_dma_active_time_percent=0.2,
        static_dma_size=600,
        dynamic_dma_size_percent=0.4,
        software_dynamic_dma_size=300,
        hardware_dynamic_dma_size_percent=0.1,
        dynamic_dma_packet_percent=2 / 3,
    )


def test_declared_tensors_set_the_least_reading(tmp_path):
    def tensor(kind, size, executable=1):
        return {"type": kind, "size": size, "executable_idx": executable, "process_idx": 0}

    tables = {
        "Instruction": [instruction("Tensor", 0, 1000)],
        "TensorInfo": [tensor("input", 100), tensor("weight", 200), tensor("output", 50), tensor("IN", 7, 2)],
        "ExecutionInfo": [
            {"execution_index": n, "executable_idx": 1, "process_idx": 0} for n in range(10)
        ],
    }  # fmt: skip
    expect(
        summary(tmp_path, tables),
        weight_size_bytes=200,
        inputs_and_weights_size_bytes=307,
        inputs_outputs_weights_size_bytes=357,
        mbu_min_read_util_percent=(10 * 300 + 7) / 100_000,
    )


def test_records_are_counted(tmp_path):
    tables = {
        "Instruction": [instruction("Tensor", 0, 10), instruction("Tensor", 10, 20)],
        "SemaphoreUpdate": [{"timestamp": 5, "id": "S[1]", "value": 1}],
        "DmaPacketAggregated": [dma(0, 5)],
    }
    expect(summary(tmp_path, tables), trace_count=4, event_count=1, total_row_count=5)


def test_every_published_metric_is_given(tmp_path):
    found = summary(tmp_path, {"Instruction": [instruction("Tensor", 0, 10)]})
    assert set(TABLES["Summary"].column_names) - set(found) == {"dma_packet_time"}


def test_an_empty_profile_has_zeros(tmp_path):
    found = summary(tmp_path, {})
    assert found.pop("peak_flops_bandwidth_ratio") == 2.0
    assert found.pop("total_row_count") == 1  # Metadata
    assert set(found.values()) == {0}


def test_deriving_again_changes_nothing(tmp_path):
    from neuron_tools.profile.derive import derive_tables
    from neuron_tools.profile.writer import ProfileWriter

    directory = write_profile(tmp_path / "p", {"Instruction": [instruction("Tensor", 0, 10)]})
    with open_profile(directory) as profile:
        before = (profile.tables(), profile.summary())
    writer = ProfileWriter.join(directory, 0)
    derive_tables(directory, writer)
    writer.close(complete=True)
    with open_profile(directory) as profile:
        assert (profile.tables(), profile.summary()) == before
