from pathlib import Path

import pytest

from neuron_tools.capture.install_folders import InstallFolders
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.records.program import Frame


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """What `pip install --target` leaves."""
    record = tmp_path / "some_package-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(
        'package/__init__.py,sha256=abc,10\n"package/a,b.py",,\nmodule.py,,\n../../bin/command,,\n'
    )
    return tmp_path


def test_packages_and_modules_with_a_record_beside_them_are_installed(target: Path) -> None:
    folders = InstallFolders()
    for file in ("package/__init__.py", "package/layers/linear.py", "module.py"):
        assert folders.of(str(target / file)) == str(target)


def test_the_users_files_beside_packages_are_not(target: Path) -> None:
    folders = InstallFolders()
    for file in ("train.py", "models/package/net.py", "package_of_mine/net.py"):
        assert folders.of(str(target / file)) is None


def test_a_path_that_tells_so_itself_needs_no_record(tmp_path: Path) -> None:
    record = tmp_path / "site-packages" / "torch-2.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("torch/nn.py,,\n")
    assert InstallFolders().of(str(tmp_path / "site-packages/torch/nn.py")) is None


def test_what_is_no_file_and_records_that_cannot_be_read_are_in_no_folder(tmp_path: Path) -> None:
    (tmp_path / "package-1.0.dist-info" / "RECORD").mkdir(parents=True)
    for file in ("<string>", "train.py", str(tmp_path / "package/__init__.py")):
        assert InstallFolders().of(file) is None


def test_stacks_keep_the_folder_of_each_file(target: Path) -> None:
    registry = StackRegistry()
    registry.leaf((Frame(str(target / "package/a.py"), 3, "f"), Frame(str(target / "train.py"), 1, "main")))
    rows = {row["name"]: row["installed_in"] for row in registry.take_rows()["StackFrameFileName"]}
    assert rows == {str(target / "train.py"): None, str(target / "package/a.py"): str(target)}
