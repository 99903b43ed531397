"""Where the user is: page, profile, range and filters, as they stand in the browser's address.

Whatever a page shows follows from its address, so a link reproduces the view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from urllib.parse import parse_qsl, urlencode

from neuron_tools.frozen import frozen

PROFILE, START, END, SCOPE = "profile", "start_ns", "end_ns", "scope"
WHOLE = "all"
"""Value of `scope`: all of the profile, not a typical step."""
MAXIMUM_LENGTH = 100_000  # characters of the query part; a longer one is not of our making


@frozen
class Address:
    """A parsed address.

    Attributes:
        path: The page: "/overview".
        profile: Id of the profile; "" = none.
        start_ns, end_ns: The chosen range, half open; None = all of the profile.
        parameters: All others by name; of repeated ones the last.
        root: What stands before the paths of pages where a proxy shows them: "/proxy/3001"; mostly nothing.
    """

    path: str = "/"
    profile: str = ""
    start_ns: int | None = None
    end_ns: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    root: str = ""

    @classmethod
    def parse(cls, path: str | None, search: str | None, root: str = "") -> Address:
        """The address in a browser's `pathname` and `search`; what makes no sense is left out."""
        query = (search or "").lstrip("?")[:MAXIMUM_LENGTH]
        values = dict(parse_qsl(query, keep_blank_values=True))
        start_ns, end_ns = _time(values.pop(START, "")), _time(values.pop(END, ""))
        if start_ns is None or end_ns is None or end_ns <= start_ns:
            start_ns = end_ns = None
        profile = values.pop(PROFILE, "")
        page = (path or "/").removeprefix(root) or "/"
        return cls(page, profile, start_ns, end_ns, MappingProxyType(values), root)

    def get(self, name: str, default: str = "") -> str:
        """A parameter."""
        return self.parameters.get(name, default)

    def to(self, path: str | None = None, **parameters: str | int | None) -> str:
        """The address of a page with the same profile and range.

        Args:
            path: The page; None for this one, whose parameters are kept too.
            parameters: To add or, as None, to leave out.
        """
        shared: dict[str, str | int | None] = {
            PROFILE: self.profile or None,
            START: self.start_ns,
            END: self.end_ns,
        }
        if self.start_ns is None:
            shared[SCOPE] = self.parameters.get(SCOPE)
        own = self.parameters if path is None else {}
        values = {
            name: value for name, value in {**shared, **own, **parameters}.items() if value not in (None, "")
        }
        return self.root + (path or self.path) + (f"?{urlencode(values)}" if values else "")


def _time(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
