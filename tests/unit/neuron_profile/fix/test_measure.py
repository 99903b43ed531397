from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("libcst")

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.fix import measure as measuring
from neuron_profile.fix.measure import CannotMeasureError, Measured, measure, program_of
from neuron_profile.fix.proposal import Edit, Proposal
from neuron_profile.fix.propose import NoEditError, choose
from neuron_profile.fix.values import Agreement
from neuron_tools import open_profile
from neuron_tools.errors import UsageError

EQUAL, OTHER = Agreement(3, 0.0, "", 1e-2), Agreement(3, 0.5, "loss", 1e-2)


def profile(*command, **facts):
    return SimpleNamespace(metadata={"command": list(command), "target": "trn2", "lnc": 1, **facts})


def test_a_script_below_the_tree_is_run_as_it_was_captured(tmp_path):
    (tmp_path / "train.py").touch()
    program = program_of(
        profile("python3", "train.py", "--steps", "3", settings=["hbm_bandwidth=2x"]), tmp_path
    )
    assert program.arguments == ("train.py", "--steps", "3")
    assert program.target == "trn2"
    assert program.options == ("--lnc", "1", "--set", "hbm_bandwidth=2x")


@pytest.mark.parametrize(
    "command",
    [("sh", "-c", "true"), ("python", "-m", "train"), ("torchrun", "train.py"), ("python", "../x.py"), ()],
)
def test_no_other_command_of_a_profile_is_run(tmp_path, command):
    (tmp_path.parent / "x.py").touch()
    with pytest.raises(CannotMeasureError):
        program_of(profile(*command), tmp_path)


def test_a_file_outside_of_the_tree_is_not_edited(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    other = tmp_path / "other.py"
    finding = Finding("host_synchronisation", "", "", Place(str(other), 1))
    with pytest.raises(CannotMeasureError, match="not below"):
        measure(profile("python", "train.py"), Proposal(finding, other, "", Edit("", "")), tree)


def test_a_large_tree_is_not_copied(tmp_path, monkeypatch):
    (tmp_path / "data.bin").write_bytes(b"x" * 2048)
    monkeypatch.setattr(measuring, "LARGEST_TREE_BYTES", 1024)
    with pytest.raises(CannotMeasureError, match="--tree"), measuring._copy(tmp_path):
        pass


def test_the_copy_leaves_out_profiles_and_environments(tmp_path):
    for name in ("train.py", "run.nprof/profile.json", ".git/config", "data/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with measuring._copy(tmp_path) as copy:
        files = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert files == {"train.py", "data/a.txt"}
    assert not copy.exists()


@pytest.mark.parametrize(
    ("after_ns", "agreement", "holds"), [(60, EQUAL, True), (60, OTHER, False), (110, EQUAL, False)]
)
def test_an_edit_holds_that_is_faster_and_computes_the_same(after_ns, agreement, holds):
    assert Measured(40, 100, after_ns, agreement).holds is holds


def test_why_there_is_no_edit_is_told(make_profile):
    finding = Finding("throttling", "", "Spread the work.", Place("/project/train.py", 2))
    changed = Finding("host_synchronisation", "", "", Place("/project/train.py", 2))
    with open_profile(make_profile()) as opened:
        with pytest.raises(NoEditError, match="Spread the work"):
            choose(opened, [finding], None)
        with pytest.raises(NoEditError, match="cannot be read"):
            choose(opened, [changed], 1)
        with pytest.raises(UsageError, match="no finding 3"):
            choose(opened, [finding], 3)
        with pytest.raises(NoEditError, match="Nothing was found"):
            choose(opened, [], None)
