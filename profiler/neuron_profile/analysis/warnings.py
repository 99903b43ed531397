"""What a profile warns of, equal messages joined."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_WARNINGS = """
SELECT coalesce(category, '') AS category, message, count(*) AS count FROM "Warning" GROUP BY ALL
ORDER BY category, count DESC, message
"""


@frozen
class ProfileWarning:
    """A warning and how often it was given."""

    category: str
    message: str
    count: int


def find_warnings(profile: Profile) -> tuple[ProfileWarning, ...]:
    """Warnings by category and falling count."""
    whole = profile.whole
    return whole.kept("warnings", lambda: _warnings(whole))


def _warnings(profile: Profile) -> tuple[ProfileWarning, ...]:
    return tuple(ProfileWarning(**row) for row in profile.query(_WARNINGS).to_pylist())
