import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from neuron_explorer.cli import neuron_explorer
from neuron_tools.command_line import run

PATIENCE_S = 120.0


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(neuron_explorer, "neuron-explorer", ["--help"]) == 0
    assert "Example:\n    neuron-explorer train.nprof" in capsys.readouterr().out
    assert run(neuron_explorer, "neuron-explorer", ["--version"]) == 0
    assert capsys.readouterr().out.startswith("neuron-explorer ")


def test_what_is_no_profile_is_one_line(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(neuron_explorer, "neuron-explorer", [str(tmp_path / "missing")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.startswith("Error: ")) == ("", 1, True)


@pytest.mark.parametrize("entry", ["neuron_explorer.cli", "neuron_profile.cli"])
def test_it_serves_until_interrupted(make_profile, entry: str) -> None:
    words = ["view"] if entry == "neuron_profile.cli" else []
    command = [sys.executable, "-m", entry, *words, str(make_profile()), "-p", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/workspace\?profile=\w+&token=\S+", line)
        assert url is not None, line
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(url.group().replace("token=", "token=x"))
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"react-entry-point" in opener.open(url.group()).read()
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
