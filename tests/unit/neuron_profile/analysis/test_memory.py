"""How full the memories were, what is large, what spilled."""

from __future__ import annotations

import neuron_tools
from neuron_profile.analysis.memory import OnChipUse, Spill, TensorSize, measure_memory


def use(make_profile, tables, **options):
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        return measure_memory(profile, **options)


def samples(rows):
    times, used, cores = map(list, zip(*rows))
    return {"timestamp": times, "avg_util_percent": used, "pcore_idx": cores, "process_idx": [0] * len(rows)}


def test_a_sample_holds_until_the_next_one(make_profile):
    found = use(
        make_profile,
        {
            "SbufUsage": samples([(0, 0.25, 0), (10, 0.75, 0), (40, 0.0, 0), (5, 0.5, 1)]),
            "PsumUsage": samples([(7, 1.0, 0), (9, 0.5, 0)]),
        },
    )
    assert found.on_chip == (
        OnChipUse("SBUF", 0, 0, 0.75, (0.25 * 10 + 0.75 * 30) / 40, 10),
        OnChipUse("SBUF", 0, 1, 0.5, 0.5, 5),
        OnChipUse("PSUM", 0, 0, 1.0, 1.0, 7),
    )


def test_the_largest_tensors_once_each_without_nameless_ones(make_profile):
    tensors = {
        "variable_name": ["small", "large", "large", None], "type": ["IN", "WEIGHT", "WEIGHT", None],
        "format": ["bf16", "f32", "f32", None], "shape": ["[1]", "[9,9]", "[9,9]", None],
        "size": [2, 324, 324, None], "load_to_sbuf_repeat_factor": [1.0, 1.0, 3.0, None],
    }  # fmt: skip
    found = use(make_profile, {"TensorInfo": tensors})
    assert found.tensors == (
        TensorSize("large", "WEIGHT", "f32", "[9,9]", 324, 3.0),
        TensorSize("small", "IN", "bf16", "[1]", 2, 1.0),
    )


def test_so_many_tensors_are_listed(make_profile):
    tensors = {"variable_name": ["a", "b", "c"], "size": [1, 3, 2]}
    found = use(make_profile, {"TensorInfo": tensors}, tensors=2)
    assert [each.name for each in found.tensors] == ["b", "c"]


def test_spills_by_line_and_operation(make_profile, tiny_tables):
    rows = dict(tiny_tables["Instruction"])
    count = len(rows["id"])
    rows |= {
        "source_file": ["train.py"] * count, "source_line": [7] * count, "hlo_name": ["softmax"] * count,
        "spill_save_bytes": [100, 0, 0, 50, None], "spill_reload_bytes": [0, 30, 0, None, None],
    }  # fmt: skip
    assert use(make_profile, {"Instruction": rows}).spills == (Spill("train.py", 7, "softmax", 150, 30),)


def test_the_peak_of_hbm(make_profile, tiny_tables):
    (peak,) = use(make_profile, {"SystemProfileHbmUsage": tiny_tables["SystemProfileHbmUsage"]}).peaks
    assert (peak.peak_bytes, peak.time_ns) == (5000, 20)


def test_nothing_is_told_of_what_is_not_there(make_profile):
    found = use(make_profile, {})
    assert (found.peaks, found.on_chip, found.tensors, found.spills) == ((), (), (), ())
