"""Screens on top of the main one: help, and the question before a process is ended."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

HELP = """\
q  quit                          f  FLOP/s or percent
1-9, a, d  tab of a process      x  expand or collapse all
arrows, enter  move, expand      s  next order of the processes
/  filter processes by text      k  end the chosen process
?  this help                     space  pause

Numbers are of the last second. A core that nobody holds is dim.
The mouse chooses tabs, lines and column headings.
"""


class HelpScreen(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar = [Binding("escape,q,question_mark,enter", "close", "Close")]

    def compose(self) -> ComposeResult:
        """The text in a box."""
        yield Vertical(Static(HELP, markup=False), classes="dialog")

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)


class ConfirmScreen(ModalScreen[bool]):
    """Asks whether a process is to be ended."""

    BINDINGS: ClassVar = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question in a box."""
        yield Vertical(Static(f"{self._question}\n\ny  yes    n  no", markup=False), classes="dialog")

    def action_answer(self, answer: bool) -> None:
        """Go back with the answer."""
        self.dismiss(answer)
