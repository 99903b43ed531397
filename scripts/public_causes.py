"""Failures of public cases that are not this project's: the repository's own mistakes, and limits of a run.

A mistake is listed once the repository's own code was read and shows that the case fails on every device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """Why cases fail."""

    outcome: str
    """What it counts as: "stopped" by the run's limits, "mistaken" by itself, or as it ended."""
    case: str
    """Regular expression that the names of such cases contain."""
    reason: str
    """Regular expression that their messages contain."""
    sentence: str
    run: str = ""
    """Regular expression that the run's name, "nki-library 2.29 trn3", contains."""


CAUSES = (
    Cause("stopped", "",
          "NotFinishedError|MemoryError|Unable to allocate .* for an array|can't allocate memory"
          "|No space left on device",
          "the run's limit of time, memory or disk"),
    Cause("mistaken", "test_gen_mask_tkg", r"KeyError: 'mask_out_hbm'",
          "the test names its input `mask_out_hbm.must_alias_input` and then asks for `mask_out_hbm`"),
    Cause("mistaken", "test_qkv_cte_mx_bf16_static_dequant", "keyword argument 'is_input_swizzled'",
          "the test passes an argument that the release's `qkv` does not have"),
    Cause("mistaken", "test_qkv_cte", "'module' object is not callable",
          "`qkv_cte.py` imports the module `stream_shuffle_broadcast` and calls it like its function"),
    Cause("mistaken", "test_moe_block_tkg.*_bi-0_", "'NoneType' object has no attribute 'dtype'",
          "`gate_up_projection_mx_shard_H.py` asks for the type of a bias that the case does not have"),
    Cause("mistaken", "test_attention_block_tkg", "_rms_norm_inplace: the moving operand of nc_matmul",
          "the kernel multiplies all columns of its heads at once; AWS allows 512, what a PSUM bank holds"),
    Cause("mistaken", "test_attention_block_tkg", r"RuntimeError: The size of tensor a \(\w+\) must match",
          "weights quantized by row: the library's own reference multiplies them by scales of another shape"),
    Cause("refused", "test_attention_block_tkg", "weight scale for row quantization",
          "the test gives weights quantized by row the scales of static quantization"),
    Cause("mistaken", "", r"Cannot cast array data from dtype\(float\w+_x\w\)",
          "the library's simulator run converts packed results with NumPy, which has no such conversion"),
    Cause("mistaken", "test_ranged_attn_cte_sweep_cp_manual.*-32-31-128-2-True-False-False-False-False",
          "_pv_large_tile_impl: the tile .* is read, but .* was written in between",
          "of 32 ranks a group of queries sees three large tiles, whose weights the kernel keeps in two "
          "places; results differ if they share them"),
    Cause("mistaken", r"test_attention_block_tkg.*_\d{3,}-.*-bfloat16-1-", "Validation failed for",
          "`qkv_cte.py` clips quantized values to 448 there, its reference to 240, the largest `float8_e4m3`",
          run="trn3"),
)  # fmt: skip


def cause_of(run: str, case: str, reason: str) -> Cause | None:
    """The known cause of a failure; nothing where it may be this project's.

    Args:
        run: Repository, snapshot and target: "nki-library 2.29 trn2".
        case: The name of the case.
        reason: Its message.
    """
    for cause in CAUSES:
        patterns = (cause.run, cause.case, cause.reason)
        if all(map(re.search, patterns, (run, case, reason))):
            return cause
    return None
