"""What AWS's `neuron-explorer` takes, as our commands take it."""

import pytest

from neuron_profile.launch.aws_arguments import translated
from neuron_tools.errors import UsageError

# As the migration from neuron-profile to neuron-explorer has them: what is given, and what it is here.
LINES = {
    "capture -n file.neff": "capture -n file.neff -s profile.ntff",
    "capture -n file.neff -s run.ntff --num-exec 20 --profile-nth-exec=10": (
        "capture -n file.neff -s run.ntff --num-exec 20 --profile-nth-exec=10"
    ),
    "capture -n file.neff --single-io --exec-mode async x x.npy": "capture -n file.neff -s profile.ntff",
    "capture -t profile -n file.neff": "capture -n file.neff -s profile.ntff",
    "capture -o run.nprof -- python train.py -t 3": "capture -o run.nprof -- python train.py -t 3",
    "view -n file.neff -s profile.ntff --output-format summary-text": (
        "view -n file.neff -s profile.ntff --output-format summary-text"
    ),
    "view -d ./output --disable-ui --display-name run": "view ./output --no-browser",
    "view -d ./output --ingest-only --data-path /data": "view ./output --output-format parquet",
    "view --show-profile-schema": "show-schema --format openapi",
    "inspect python train.py -o 3": "capture -- python train.py -o 3",
    "inspect -o out --capture-system-profiles python train.py": "capture -o out -- python train.py",
    "recommend -n k.neff -s k.ntff --nki-source-root .": "advise --markdown -n k.neff -s k.ntff",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_means_the_same_here(line: str) -> None:
    command, *arguments = line.split()
    assert " ".join(translated(command, arguments).arguments) == LINES[line]


def test_what_changes_nothing_is_told() -> None:
    found = translated("capture", ["-n", "file.neff", "--enable-dge-notifs", "x", "x.npy"])
    assert found.ignored == ("--enable-dge-notifs", "the input tensors")


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (["-n", "k.neff", "-r", "2"], "capture --ranks N"),
        (["-t", "systrace", "-n", "k.neff"], "inspect COMMAND"),
        (["-n", "k.neff", "--save-output"], "compare them there"),
    ],
)
def test_what_is_not_there_is_refused_with_what_to_do_instead(arguments: list[str], instead: str) -> None:
    with pytest.raises(UsageError, match=instead):
        translated("capture", arguments)


def test_inspect_writes_into_a_folder_that_is_there(tmp_path) -> None:
    found = translated("inspect", ["-o", str(tmp_path), "python", "train.py"])
    assert found.arguments == ("capture", "-o", str(tmp_path / "profile.nprof"), "--", "python", "train.py")
