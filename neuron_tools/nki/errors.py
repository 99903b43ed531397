"""Errors of NKI kernels: each names the kernel's own line, what was wrong and what to do."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class NkiError(NeuronToolsError):
    """A kernel cannot run as it stands.

    Attributes:
        where: The kernel's line, "file:line in function"; "" where it is not known.
    """

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class NkiValidationError(NkiError):
    """An instruction breaks a rule of the hardware or of the language."""


class WrongTypeError(NkiValidationError, TypeError):
    """A function of the language is called with arguments that it does not have, or of a wrong type."""


class WrongValueError(NkiValidationError, ValueError):
    """A function of the language is called with a value that it cannot take."""


class OutOfBoundsError(NkiValidationError, IndexError):
    """An access reaches outside its tensor."""


class UninitializedReadError(NkiValidationError):
    """Data is read that nothing has written."""


class OutOfMemoryError(NkiValidationError):
    """The tiles that live at one time do not fit into SBUF or PSUM."""


class RaceError(NkiValidationError):
    """Two tiles share an address and nothing orders their uses."""


class ArgumentRaceError(RaceError):
    """One core reads an argument where another writes it: old values or new ones, both defined."""


class MissingApiError(NkiError, AttributeError):
    """A call that this package does not have; the text says what exists nearby."""


class TracingError(NkiError):
    """A language function was called where no kernel runs, or a kernel was called wrongly."""
