import hashlib
import os
from pathlib import Path

import pytest

from neuron_tools import hardware
from neuron_tools.capture.metadata import MAX_SOURCE_BYTES, metadata_row, program_name, source_file_rows
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.profile.schema import TABLES

CORE = hardware.get("trn2")


def row(end_ns, command=("python", "train.py")):
    return {
        name: values[0]
        for name, values in metadata_row(CORE, CaptureOptions(Path("x")), command, end_ns).items()
    }


def test_times_are_written_as_the_published_profiles_do():
    assert row(None)["last_ts"] == "1970-01-01T00:00:00.000000000Z"
    finished = row(61_000_000_005)
    assert finished["last_ts"] == "1970-01-01T00:01:01.000000005Z"
    assert finished["last_hw_timestamp"] == 61_000_000_005


def test_the_profile_is_marked_as_simulated_and_named_after_the_script():
    made = row(1)
    assert made["is_simulation"] is True
    assert made["profile_name"] == "train"
    assert (made["num_physical_cores"], made["vnc_enabled"]) == (1, False)


def test_figures_are_those_of_the_simulated_core():
    made = row(1)
    assert made["hbm_ddr_bandwidth"] == CORE.hbm_bandwidth
    assert made["tensor_engine_num_rows"] == CORE.tensor_rows
    assert made["instance_type"] == CORE.instance_type


def test_every_column_is_one_of_the_schema():
    assert set(row(1)) <= set(TABLES["Metadata"].column_names)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "examples/train.py", "--x"], "train"),
        (["/usr/bin/torchrun", "--nproc", "2"], "torchrun"),
        (["python", "-c", "print(1)"], "python"),
        ([], "profile"),
    ],
)
def test_a_capture_is_called_after_what_ran(command, name):
    assert program_name(command) == name


def test_source_files_are_kept_with_their_hash(tmp_path):
    path = tmp_path / "a\nb.py"
    path.write_bytes(b"caf\xe9\n")
    rows = source_file_rows([str(path)], {})
    assert rows["text"] == ["caf\ufffd\n"]
    assert rows["sha256"] == [hashlib.sha256(b"caf\xe9\n").hexdigest()]


def test_a_very_large_file_is_kept_as_its_hash_only(tmp_path):
    path = tmp_path / "big.py"
    path.write_bytes(b"#" * (MAX_SOURCE_BYTES + 1))
    assert source_file_rows([str(path)], {})["text"] == [None]


def test_what_is_no_readable_file_is_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    files = ["<string>", "/none.py", "nul\0.py", str(tmp_path), str(tmp_path / "pipe")]
    assert source_file_rows(files, {})["path"] == []


def test_what_was_typed_is_kept_as_its_process_told_it():
    rows = source_file_rows(["<ipython-input-1-0>"], {"<ipython-input-1-0>": "x = 1\n"})
    assert rows["text"] == ["x = 1\n"]
    assert rows["sha256"] == [hashlib.sha256(b"x = 1\n").hexdigest()]
