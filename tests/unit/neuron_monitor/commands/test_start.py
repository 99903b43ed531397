"""What every command of the monitor starts with."""

import pytest

from neuron_monitor.commands import start


@pytest.mark.parametrize("are_outdated", [True, False])
def test_compiled_loops_of_older_code_are_told_in_one_line(tmp_path, monkeypatch, capsys, are_outdated):
    monkeypatch.setattr(start, "collect_seldom", lambda: None)
    monkeypatch.setattr(start.kernels, "are_outdated", are_outdated)
    start.make_sampler(str(tmp_path), "host").close()
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == are_outdated
    assert ("pip install --no-deps --no-build-isolation -e ." in told.err) is are_outdated
