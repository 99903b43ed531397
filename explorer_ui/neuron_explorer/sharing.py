"""What users of an Explorer may do that several people share, and what nobody may where it only shows."""

from __future__ import annotations

import hashlib
from pathlib import Path

from neuron_explorer.user_store import UserStore
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.web_access import current_user

USERS_FOLDER = "users"


class NotSharedError(NeuronToolsError):
    """Whoever asks may not do this in an Explorer that is shared."""


@frozen
class Sharing:
    """How an Explorer is shared.

    Attributes:
        is_read_only: Nothing is taken in, removed or remembered.
        has_users: Several people use it, told apart by name.
    """

    is_read_only: bool = False
    has_users: bool = False

    def require_writing(self) -> None:
        """Go on only where something may be taken in or removed.

        Raises:
            NotSharedError: The Explorer only shows what is there.
        """
        if self.is_read_only:
            raise NotSharedError("This Explorer only shows what is there: it was started with --read-only.")

    def require_paths(self) -> None:
        """Go on only where whoever asks may name files of this machine.

        Raises:
            NotSharedError: The Explorer only shows what is there, or the files are not this user's.
        """
        self.require_writing()
        if self.has_users:
            raise NotSharedError(
                "Files of this machine are not yours to add: drop a trace onto the page, or ask its owner."
            )

    def require_own(self, profile: Path, store: UserStore) -> None:
        """Go on only where whoever asks may remove a profile.

        Raises:
            NotSharedError: The Explorer only shows what is there, or the profile is not this user's.
        """
        self.require_writing()
        if self.has_users and not profile.resolve().is_relative_to(store.folder.resolve()):
            raise NotSharedError(f"{profile.name} is not yours to delete: you have not imported it.")


NOT_SHARED = Sharing()


class SharedStore(UserStore):
    """What is remembered for each user of a shared Explorer, in a folder of the user's.

    Args:
        folder: Where the folders stand; the folder of whoever started the Explorer by default.
        sharing: How the Explorer is shared; nothing is written where it only shows.
    """

    def __init__(self, sharing: Sharing, folder: Path | None = None) -> None:
        super().__init__(folder)
        self._sharing = sharing

    @property
    def folder(self) -> Path:
        """The folder of the user who asks. Its name tells nothing that a file system could misread."""
        user = current_user()
        if not user:
            return self._folder
        return self._folder / USERS_FOLDER / hashlib.sha256(user.encode()).hexdigest()[:32]

    def _require_writing(self) -> None:
        self._sharing.require_writing()
