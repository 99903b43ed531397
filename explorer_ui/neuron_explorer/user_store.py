"""What the Explorer remembers for its user between runs: tags of profiles, saved queries and markers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from neuron_explorer.marker_sets import LONGEST_NAME, Marker, MarkerSet, stored_sets
from neuron_tools.errors import NeuronToolsError

FILE_NAME = "explorer.json"
MOST_TAGS, LONGEST_TAG = 12, 40
MOST_QUERIES, LONGEST_QUERY = 200, 20_000
MOST_MARKER_SETS = 200
_FIELDS = ("tags", "queries", "markers")


class StoreError(NeuronToolsError):
    """What was to be remembered cannot be written, or is too much."""


def data_folder() -> Path:
    """The user's folder for data of this program (the XDG base directory specification)."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "neuron-tools"


class UserStore:
    """Tags, queries and markers in one JSON file. A file that cannot be read counts as empty.

    Args:
        folder: Where the file stands; the user's own folder by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or data_folder()
        self._lock = Lock()

    @property
    def folder(self) -> Path:
        """Where the file stands."""
        return self._folder

    def _require_writing(self) -> None:
        """Refuse, by an error, what is to be remembered."""

    def tags(self, profile_id: str) -> tuple[str, ...]:
        """Tags of a profile in the order in which they were given."""
        found = self._read().get("tags", {}).get(profile_id, ())
        return tuple(str(tag) for tag in found)

    def set_tags(self, profile_id: str, tags: Sequence[str]) -> None:
        """Give a profile other tags; empty and repeated ones are left out.

        Raises:
            StoreError: There are too many, or the file cannot be written.
        """
        kept = list(dict.fromkeys(tag.strip()[:LONGEST_TAG] for tag in tags if tag.strip()))
        if len(kept) > MOST_TAGS:
            raise StoreError(f"A profile has at most {MOST_TAGS} tags: remove some.")
        with self._lock:
            content = self._read()
            all_tags = {**content.get("tags", {}), profile_id: kept}
            self._write({**content, "tags": {key: value for key, value in all_tags.items() if value}})

    def queries(self) -> Mapping[str, str]:
        """Saved queries by name."""
        return {str(name): str(text) for name, text in self._read().get("queries", {}).items()}

    def save_query(self, name: str, text: str) -> None:
        """Keep a query under a name, or forget it where the text is empty.

        Raises:
            StoreError: It has no name, there are too many, or the file cannot be written.
        """
        name = _own_name(name, "the query")
        with self._lock:
            content = self._read()
            queries = {**content.get("queries", {}), name: text[:LONGEST_QUERY]}
            kept = {key: value for key, value in queries.items() if value.strip()}
            if len(kept) > MOST_QUERIES:
                raise StoreError(f"At most {MOST_QUERIES} queries are kept: remove some.")
            self._write({**content, "queries": kept})

    def marker_sets(self) -> tuple[MarkerSet, ...]:
        """Saved markers of all profiles, by profile and name."""
        return stored_sets(self._read().get("markers"))

    def save_markers(self, profile_id: str, profile_name: str, name: str, markers: Sequence[Marker]) -> None:
        """Keep markers of a profile under a name, or forget those of that name where there are none.

        Raises:
            StoreError: They have no name, there are too many, or the file cannot be written.
        """
        name = _own_name(name, "the markers")
        with self._lock:
            content = self._read()
            others = [
                one for one in stored_sets(content.get("markers"))
                if (one.profile_id, one.name) != (profile_id, name)
            ]  # fmt: skip
            if markers and len(others) >= MOST_MARKER_SETS:
                raise StoreError(f"At most {MOST_MARKER_SETS} sets of markers are kept: remove some.")
            saved = [MarkerSet(profile_id, profile_name, name, tuple(markers))] if markers else []
            self._write({**content, "markers": _stored([*others, *saved])})

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads((self.folder / FILE_NAME).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        fields = {name: content.get(name) for name in _FIELDS} if isinstance(content, dict) else {}
        return {name: value for name, value in fields.items() if isinstance(value, dict)}

    def _write(self, content: Mapping[str, Any]) -> None:
        self._require_writing()
        path = self.folder / FILE_NAME
        temporary = path.with_suffix(f".{os.getpid()}.writing")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")
            os.replace(temporary, path)
        except OSError as error:
            raise StoreError(f"{path} cannot be written ({error.strerror}).") from error
        finally:
            with suppress(OSError):
                temporary.unlink()


def _stored(sets: Sequence[MarkerSet]) -> dict[str, Any]:
    """Sets of markers as the file has them."""
    kept: dict[str, Any] = {}
    for one in sets:
        of_profile = kept.setdefault(one.profile_id, {"profile": one.profile_name, "sets": {}})
        of_profile["sets"][one.name] = [marker.plain for marker in one.markers]
    return kept


def _own_name(name: str, what: str) -> str:
    if not name.strip():
        raise StoreError(f"Give {what} a name to be saved under.")
    return name.strip()[:LONGEST_NAME]
