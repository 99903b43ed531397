"""Texts from the captured program as the profile can hold them."""

from __future__ import annotations


def storable(text: object) -> str:
    """The text with what UTF-8 cannot encode (parts of a file name that is no UTF-8) spelled out.

    Raises:
        TypeError: It is no text.

    Example:
        >>> storable("caf\\udce9.py")
        'caf\\\\udce9.py'
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
