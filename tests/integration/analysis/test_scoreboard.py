"""Programs of the scoreboard from the fault to the measured edit, in one go."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")

from benchmarks.faults.cases import Case, one_of_each, read_cases, read_clean
from benchmarks.faults.scoreboard import GAIN_TOLERANCE, score, score_clean

pytestmark = pytest.mark.slow


def case_of(family: str) -> Case:
    return next(case for case in one_of_each(read_cases()) if case.family == family)


@pytest.mark.parametrize(
    "family",
    ["eager_upcast", "fp32_model", "item_sum", "kernel_one_engine", "kernel_reloads", "repeated_cast"],
)
def test_the_first_finding_is_the_fault_and_its_edit_saves_what_it_promises(family, tmp_path):
    found = score(case_of(family), tmp_path)
    assert found.is_right
    assert found.edit_holds


@pytest.mark.parametrize(
    "family",
    [
        "attention_by_hand",
        "changing_shapes",
        "growing_cache",
        "optimizer_loop",
        "optimizer_steps",
        "tiny_batches",
        "tiny_chain",
    ],
)
def test_the_first_finding_is_the_fault_and_its_mended_twin_gains_what_it_promises(family, tmp_path):
    found = score(case_of(family), tmp_path)
    assert found.is_right
    assert found.gain_error <= GAIN_TOLERANCE


@pytest.mark.parametrize("family", ["compiled_encoder", "fused_attention", "kernel_scale", "kernel_softmax"])
def test_a_clean_program_is_left_in_peace(family, tmp_path):
    found = score_clean(next(case for case in one_of_each(read_clean()) if case.family == family), tmp_path)
    assert found.is_clean, found.worst
