"""A kernel to try, and what trying it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy.typing as npt

from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen

Arrays = tuple[npt.NDArray[Any], ...]
Parameters = Mapping[str, Any]


class Refusal(Enum):
    """Why a candidate has no time that counts."""

    RULE = "breaks a rule of the hardware or of NKI"
    VALUES = "computes other values"
    FAILED = "raises an error"
    TIMEOUT = "takes too long"
    CRASHED = "ends its process"


@frozen
class Candidate:
    """A kernel of a file, with values for its keyword parameters or the file's constants.

    Attributes:
        path: The Python file.
        function: The kernel's name in it.
        parameters: Value by name: of a parameter of the kernel, else of a constant of the file.
    """

    path: Path
    function: str
    parameters: Parameters = field(default_factory=dict)

    @classmethod
    def named(cls, text: str) -> Candidate:
        """The kernel that "FILE.py:FUNCTION" names.

        Raises:
            UsageError: It is not of this form, or there is no such file.
        """
        file, _, function = text.rpartition(":")
        if not file or not function.isidentifier():
            raise UsageError(f"The kernel {text!r} is not understood: write FILE.py:FUNCTION.")
        if not Path(file).is_file():
            raise UsageError(f"There is no file {file}: name the one with the kernel as FILE.py:FUNCTION.")
        return cls(Path(file).resolve(), function)


@dataclass(frozen=True)
class Measurement:
    """What one candidate gave.

    Attributes:
        time_ns: Simulated device time of a call; None where it was refused before it had one.
        sbuf_bytes: Most bytes of a partition of SBUF that tiles held at once.
        counters: "instructions", "dma_transfers", and "busy_ns_ENGINE" for each engine.
        refusal: Why it does not count; None where it does.
        error: The same as a sentence; "" where it counts.
        difference: Largest difference from the expected values, relative to the largest of these; None where
            values were not compared.
        outputs: What the kernel returned; None unless asked for.
    """

    candidate: Candidate
    time_ns: float | None = None
    sbuf_bytes: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)
    refusal: Refusal | None = None
    error: str = ""
    difference: float | None = None
    outputs: Arrays | None = None

    @property
    def counts(self) -> bool:
        """Whether it may be chosen."""
        return self.refusal is None and self.time_ns is not None
