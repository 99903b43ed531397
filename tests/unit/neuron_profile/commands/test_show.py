"""`neuron-profile show` and `capture -n` on a compiled artifact."""

import json

import pytest
from click.testing import CliRunner

from neuron_profile.commands.show import show
from neuron_profile.launch.artifact import capture_artifact
from neuron_tools import open_profile
from neuron_tools.capture.artifact import Repetition
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.neff import write_neff
from tests.unit.neff.computation import FIRST_LINE, artifact

CHOSEN = (1, "measured", ())


@pytest.fixture(scope="module")
def neff():
    return artifact()


@pytest.fixture
def path(neff, tmp_path):
    write_neff(neff, tmp_path / "model.neff")
    return tmp_path / "model.neff"


def shown(*arguments):
    return CliRunner().invoke(show, [str(argument) for argument in arguments], catch_exceptions=False).output


def test_a_person_reads_tensors_engines_and_source_lines(path):
    text = " ".join(shown(path).split())
    for part in ("product", "trn2", "head.weight f32[64,64] weight", "Model FLOPs 524,288", FIRST_LINE[3:20]):
        assert part in text


def test_a_program_reads_the_manifest(path, neff):
    assert json.loads(shown(path, "--json")) == neff.manifest


def test_the_stablehlo_is_printed_as_it_is(path):
    assert shown(path, "--stablehlo") == "module {}\n"


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "x.neff").write_text("hello")
    with pytest.raises(NeuronToolsError, match="not a compiled artifact"):
        shown(tmp_path / "x.neff")


def test_an_artifact_is_captured_for_the_target_it_was_compiled_for(path, tmp_path):
    (directory,) = capture_artifact(path, tmp_path / "run", None, CHOSEN, Repetition(2))
    with open_profile(directory) as profile:
        assert profile.query("SELECT count(*) AS n FROM ExecutionInfo").to_pylist() == [{"n": 2}]


def test_an_artifact_and_a_command_are_too_much(path):
    with pytest.raises(UsageError, match=r"python x\.py"):
        capture_artifact(path, None, None, CHOSEN, Repetition(), ("python", "x.py"))
