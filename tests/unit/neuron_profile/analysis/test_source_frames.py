from pathlib import Path

from neuron_profile.analysis.source_frames import SourceFrame, SourceLine, SourceTexts, load_frames, stack
from neuron_tools import open_profile


def test_frames_by_id_with_their_callers(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        frames = load_frames(profile)
    assert frames == {
        "1": SourceFrame("/project/train.py", 2, "main", ""),
        "2": SourceFrame("/project/train.py", 3, "main", "1"),
    }
    assert [frame.line for frame in stack(frames, "2")] == [3, 2]


def test_a_stack_that_runs_in_circles_ends() -> None:
    frames = {"1": SourceFrame("a.py", 1, "", "2"), "2": SourceFrame("a.py", 2, "", "1")}
    assert [frame.line for frame in stack(frames, "1")] == [1, 2]


def test_the_text_kept_in_the_profile(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        texts = SourceTexts(profile)
        assert texts.files() == ["/project/train.py"]
        assert texts.line(SourceLine("/project/train.py", 2)) == "y = layer(x)"
        assert texts.line(SourceLine("/project/train.py", 99)) == ""


def test_a_file_listed_without_text_is_not_read_from_the_disk(
    make_profile, tiny_tables, tmp_path: Path
) -> None:
    listed = tmp_path / "secret.py"
    listed.write_text("password\n")
    source = {"path": [str(listed)], "sha256": ["00"], "text": [None]}
    with open_profile(make_profile(tables={**tiny_tables, "SourceFile": source})) as profile:
        assert SourceTexts(profile).files() == [str(listed)]
        assert SourceTexts(profile).lines(str(listed)) == []
