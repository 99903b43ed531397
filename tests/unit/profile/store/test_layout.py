import json

import pytest

from neuron_tools.profile.store import layout
from neuron_tools.profile.store.layout import NotAProfileError


def write(directory, text):
    (directory / "profile.json").write_text(text)
    return directory


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    layout.write_manifest(tmp_path, layout.new_manifest({"target": "trn2"}, "test 1"))
    manifest = layout.read_manifest(tmp_path)
    assert (manifest["target"], manifest["complete"], manifest["producer"]) == ("trn2", False, "test 1")
    assert [path.name for path in tmp_path.iterdir()] == ["profile.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("\xff", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "belongs to something else"),
        ('{"format": "other"}', "belongs to something else"),
        (json.dumps({"format": layout.FORMAT, "format_version": "x"}), "no valid format version"),
        (json.dumps({"format": layout.FORMAT, "format_version": "2.0"}), "newer than this version"),
    ],
)
def test_what_is_no_profile_is_told_in_one_sentence(tmp_path, text, message):
    with pytest.raises(NotAProfileError, match=message) as raised:
        layout.read_manifest(write(tmp_path, text))
    assert "\n" not in str(raised.value)


def test_a_newer_minor_version_is_read(tmp_path):
    write(tmp_path, json.dumps({"format": layout.FORMAT, "format_version": "1.9", "new": 1}))
    assert layout.read_manifest(tmp_path)["new"] == 1


def test_parts_sort_in_the_order_of_writing():
    names = [layout.part_name(process, number) for process, number in [(0, 9), (0, 10), (1, 0)]]
    assert names == sorted(names)


def test_half_written_parts_are_no_parts(tmp_path):
    (tmp_path / "Flow").mkdir()
    (tmp_path / "Flow" / f"{layout.part_name(0, 0)}{layout.TEMPORARY_SUFFIX}").touch()
    assert layout.part_files(tmp_path, "Flow") == []
