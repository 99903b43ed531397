from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from neuron_profile.cli import neuron_profile
from neuron_tools.command_line import run


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Answer]:
    """Runs `neuron-profile` with arguments."""

    def call(*arguments: object) -> Answer:
        status = run(neuron_profile, "neuron-profile", [str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Answer(status, out.decode(), err.decode())

    return call
