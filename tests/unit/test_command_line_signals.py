"""What a command has half made when it is told to end is removed."""

import os
import signal

import pytest

from neuron_tools.command_line import cleaning_up_when_terminated


def half_make(path, number):
    with cleaning_up_when_terminated():
        path.touch()
        try:
            os.kill(os.getpid(), number)
        finally:
            path.unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_leaves_through_the_clean_up(tmp_path, number):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended:
        half_make(tmp_path / "half", number)
    assert ended.value.code == 128 + number
    assert not (tmp_path / "half").exists()
    assert signal.getsignal(number) is before
