"""Sessions of compiled artifacts, as AWS's tools name them: `-n FILE.neff -s FILE.ntff`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuron_tools.errors import UsageError


@contextmanager
def session_profile(neff: Path | None, session: Path | None) -> Iterator[tuple[str, ...]]:
    """The profile that a session file stands for; none without one.

    A folder is a profile. A file is what `nki.profile` and `nki.baremetal` write beside the artifact: its
    execution takes the same time whenever it is repeated, so that it is executed again for the profile, which
    lasts as long as this context does.

    Args:
        neff: The artifact; not needed for a profile, which holds what was executed.
        session: The session file, or the profile.

    Raises:
        UsageError: The session is not there, or is a file without its artifact.
        NeuronToolsError: The artifact cannot be read.
    """
    if session is None:
        if neff is not None:
            raise UsageError(f"Name the session of {neff} with -s FILE.ntff; capture -n {neff} writes one.")
        yield ()
    elif session.is_dir():
        yield (str(session),)
    elif not session.is_file():
        raise UsageError(
            f"There is no session {session}: write one with neuron-profile capture -n FILE.neff."
        )
    elif neff is None:
        raise UsageError(f"Name the artifact that {session} tells of with -n FILE.neff.")
    else:
        from neuron_profile.launch.artifact import capture_artifact
        from neuron_tools.capture.artifact import Repetition

        with tempfile.TemporaryDirectory(prefix="neuron-session-") as folder:
            place = Path(folder) / f"{session.stem}.nprof"
            yield tuple(map(str, capture_artifact(neff, place, None, (None, "fixed", ()), Repetition())))
