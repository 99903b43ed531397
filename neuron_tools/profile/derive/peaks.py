"""What the hardware of a profile could do at most, from its Metadata."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.store.recorded import RecordedTables

_METADATA = """
    SELECT max(num_physical_cores) AS physical_cores, max(hbm_ddr_bandwidth) AS hbm_bytes_per_second,
           max(neuroncore_clock_freq) AS clock_ghz,
           max(2.0 * tensor_engine_num_rows * tensor_engine_num_cols * tensor_engine_clock_freq)
               AS core_gflops
    FROM Metadata
"""
_CORES = "SELECT count(*) AS n FROM (SELECT DISTINCT process_idx, pcore_idx FROM Instruction)"


@frozen
class Peaks:
    """Peak rates of all cores that the profile has together; 0 where the profile does not say.

    Attributes:
        core_flops_per_second: Of one physical core: 2 x rows x columns x clock of its Tensor engine.
        flops_per_second: The same of all physical cores.
        stack_bytes_per_second: Of one HBM stack, which a logical NeuronCore works from.
        hbm_bytes_per_second: Of one HBM stack for each logical NeuronCore.
        clock_hz: Base clock, in which cycles are counted.
    """

    core_flops_per_second: float
    flops_per_second: float
    stack_bytes_per_second: float
    hbm_bytes_per_second: float
    clock_hz: float


def read_peaks(recorded: RecordedTables) -> Peaks:
    """The peaks of a profile.

    The published metrics take the peak of the NeuronCore's physical cores and of one HBM stack
    (descriptions of mfu_estimated_percent and mbu_estimated_percent, Neuron Profiler 2.28; checked with a
    trn2 profile at LNC 2). Where a profile has several NeuronCores, both are taken for each.
    """
    row = recorded.row(_METADATA)
    physical = max(int(row["physical_cores"] or 1), 1)
    cores = max(recorded.row(_CORES)["n"], physical)
    core_flops = (row["core_gflops"] or 0.0) * 1e9
    stack = row["hbm_bytes_per_second"] or 0.0
    return Peaks(
        core_flops_per_second=core_flops,
        flops_per_second=core_flops * cores,
        stack_bytes_per_second=stack,
        hbm_bytes_per_second=stack * max(cores // physical, 1),
        clock_hz=(row["clock_ghz"] or 0.0) * 1e9,
    )
