"""A part with a whole footer and broken pages is named in one sentence, whatever reads it."""

import shutil

import numpy as np
import pytest

from neuron_tools import open_profile
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.export import export_perfetto
from neuron_tools.profile.store.damage import DamagedProfileError
from neuron_tools.profile.store.layout import part_files
from tests.unit.profile.builders import instruction, write_profile


@pytest.fixture
def damaged(tmp_path):
    """A profile without an index whose instructions' pages are garbage."""
    rows = [instruction("Tensor", n, n + 1, id=n) for n in range(5000)]
    directory = write_profile(tmp_path / "p.nprof", {"Instruction": rows}, derive=False)
    shutil.rmtree(directory / "timeline", ignore_errors=True)
    (part,) = part_files(directory, "Instruction")
    content = np.frombuffer(part.read_bytes(), np.uint8).copy()
    content[4 : len(content) // 4] = 0xFF
    part.write_bytes(content.tobytes())
    return directory


@pytest.mark.parametrize(
    "read",
    [
        lambda profile, _: profile.tracks(),
        lambda profile, _: profile.row("Instruction", 7),
        lambda profile, _: list(profile.stored_batches("Instruction", ["id", "start_ts", "opcode"])),
        lambda profile, folder: export_perfetto(profile, folder / "p.pftrace"),
    ],
    ids=["tracks", "row", "stored_batches", "export"],
)
def test_what_cannot_be_read_is_named(damaged, tmp_path, read):
    with open_profile(damaged) as profile, pytest.raises(DamagedProfileError, match=r"Instruction.*damaged"):
        read(profile, tmp_path)


def test_queries_say_so_too(damaged):
    with open_profile(damaged) as profile, pytest.raises(NeuronToolsError):
        profile.query("SELECT sum(id), max(opcode), sum(end_ts) FROM Instruction")


def test_the_rest_is_seen_without_the_part(damaged):
    shutil.rmtree(damaged / "Instruction")
    with open_profile(damaged) as profile:
        assert profile.timelines(pixels=10).num_rows == 0
