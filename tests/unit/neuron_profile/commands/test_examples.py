from __future__ import annotations


def test_the_examples_are_written_and_nothing_is_overwritten(command, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command("examples")
    assert answer.status == 0
    assert answer.err.startswith("Wrote ")
    assert (tmp_path / "examples" / "train_transformer.py").is_file()
    assert not list(tmp_path.rglob("__pycache__"))
    again = command("examples")
    assert (again.status, again.out) == (2, "")
    assert "examples is there already: name another folder" in again.err


def test_a_folder_that_cannot_be_made_is_a_sentence(command, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    answer = command("examples", tmp_path / "file" / "examples")
    assert answer.status == 1
    assert "cannot be written (Not a directory)" in answer.err
