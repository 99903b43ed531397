"""Numbers as a person reads them: three significant digits and a unit."""

from __future__ import annotations

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_SI_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def duration(nanoseconds: float) -> str:
    """A time span.

    Example:
        >>> duration(41_237_000)
        '41.2 ms'
    """
    for factor, unit in _TIME_UNITS:
        if _digits_reach(abs(nanoseconds), factor):
            return f"{_three_digits(nanoseconds / factor)} {unit}"
    return f"{nanoseconds:.0f} ns"


def scaled(value: float, unit: str) -> str:
    """A number with an SI prefix.

    Example:
        >>> scaled(12_345_000, "B")
        '12.3 MB'
    """
    for factor, prefix in _SI_PREFIXES:
        if _digits_reach(abs(value), factor):
            return f"{_three_digits(value / factor)} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def percent(fraction: float) -> str:
    """A fraction 0-1 in percent, with a second digit after the point where one would say nothing.

    Example:
        >>> percent(0.0423), percent(0.0004)
        ('4.2 %', '0.04 %')
    """
    value = fraction * 100
    return f"{value:.2f} %" if 0 < abs(value) < 0.095 else f"{value:.1f} %"


def count(number: int, noun: str) -> str:
    """A count with its noun.

    Example:
        >>> count(1203, "execution")
        '1,203 executions'
    """
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{_ending(noun)}"
    return f"{number:,} {plural}"


def _ending(noun: str) -> str:
    return "es" if noun.endswith(("s", "ch")) else "s"


def _digits_reach(value: float, factor: float) -> bool:
    """Whether a value, rounded to three digits, is at least 1 in that unit."""
    return value >= factor * 0.9995


def _three_digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
