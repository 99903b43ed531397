from pathlib import Path

import pytest

from neuron_explorer.user_store import FILE_NAME, StoreError, UserStore


def test_tags_and_queries_outlast_the_program(tmp_path: Path) -> None:
    UserStore(tmp_path).set_tags("a", [" base ", "", "base", "x" * 99])
    UserStore(tmp_path).save_query("mine", "SELECT 1")
    later = UserStore(tmp_path)
    assert later.tags("a") == ("base", "x" * 40)
    assert later.tags("b") == ()
    assert later.queries() == {"mine": "SELECT 1"}


def test_an_empty_text_removes_a_query(tmp_path: Path) -> None:
    store = UserStore(tmp_path)
    store.save_query("mine", "SELECT 1")
    store.save_query("mine", " ")
    assert store.queries() == {}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"tags": 3, "queries": []}'])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    store = UserStore(tmp_path)
    assert (store.tags("a"), store.queries()) == ((), {})
    store.set_tags("a", ["x"])
    assert store.tags("a") == ("x",)


def test_too_much_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="at most"):
        UserStore(tmp_path).set_tags("a", [str(number) for number in range(20)])
    with pytest.raises(StoreError, match="name"):
        UserStore(tmp_path).save_query("  ", "SELECT 1")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        UserStore(tmp_path / "file").set_tags("a", ["x"])
