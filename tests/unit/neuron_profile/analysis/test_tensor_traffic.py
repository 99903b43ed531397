"""Tensors: what of each is moved, by whom, and when memory is held for it."""

from neuron_profile.analysis.tensor_traffic import find_tensors, find_users
from neuron_tools import open_profile
from tests.unit.neuron_explorer.timeline.small_profile import filled
from tests.unit.neuron_profile.analysis.tensor_tables import with_tensors


def test_a_tensor_has_its_size_its_loads_and_when_it_is_held(make_profile, tiny_tables):
    with open_profile(make_profile(tables=with_tensors(tiny_tables))) as profile:
        weight, output = find_tensors(profile)
        assert (weight.name, weight.byte_count, weight.loads) == ("head.weight", 64, 2.0)
        assert (weight.read_bytes, weight.written_bytes, weight.transfers) == (128, 0, 2)
        assert weight.held == ((5, 2000),)
        assert (output.name, output.byte_count, output.read_bytes, output.written_bytes) == (
            "output.0",
            None,
            0,
            32,
        )


def test_of_a_range_there_are_the_tensors_that_are_moved_in_it(make_profile, tiny_tables):
    tables = with_tensors(tiny_tables)
    tables["TensorInfo"]["load_to_sbuf_total_size_bytes"] = [128]
    with open_profile(make_profile(tables=tables)) as profile:
        assert [tensor.name for tensor in find_tensors(profile.slice(1240, 1300))] == ["output.0"]


def test_buffers_that_programs_number_alike_are_told_apart_and_what_they_share_is_one(make_profile):
    columns = {
        "Executable": {"executable_idx": [1, 2], "process_idx": [0, 0], "name": ["forward", "backward"]},
        "HloInstruction": {"id": [11, 12], "executable_idx": [1, 2], "process_idx": [0, 0]},
        "TensorInfo": {
            "variable_name": ["intermediate.4", "intermediate.4", "head.weight", "head.weight"],
            "type": ["intermediate", "intermediate", "weight", "weight"],
            "size": [256, 4096, 64, 64],
            "executable_idx": [1, 2, 1, 2],
            "process_idx": [0] * 4,
        },
        "DmaPacketAggregated": {
            "variable": ["intermediate.4", "intermediate.4", "head.weight", "head.weight"],
            "source": ["HBM"] * 4,
            "dest": ["SBUF"] * 4,
            "transfer_bytes": [256, 4096, 64, 64],
            "raw_hlo_id": [11, 12, 11, 12],
        },
    }
    tables = {name: filled(name, rows) for name, rows in columns.items()}
    with open_profile(make_profile(tables=tables)) as profile:
        found = find_tensors(profile)
        told = {tensor.title: (tensor.byte_count, tensor.read_bytes) for tensor in found}
        assert told == {
            "intermediate.4 of forward": (256, 256),
            "intermediate.4 of backward": (4096, 4096),
            "head.weight": (64, 128),
        }
        (reader,) = find_users(profile, "intermediate.4 of forward")
        assert reader.byte_count == 256


def test_who_reads_and_writes_a_tensor_is_told_by_line(make_profile, tiny_tables):
    with open_profile(make_profile(tables=with_tensors(tiny_tables))) as profile:
        users = find_users(profile, "head.weight")
        assert [(user.writes, user.module, user.line, user.byte_count) for user in users] == [
            (False, "/model/a", 2, 64),
            (False, "/model/b", 3, 64),
        ]
        (writer,) = find_users(profile, "output.0")
        assert writer.writes
