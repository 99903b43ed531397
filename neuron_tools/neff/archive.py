"""The `.neff` archive: one compiled computation in one file.

A zip archive (so that any tool lists it) of `manifest.json`, the Program (`program.json` and a `.npy` file
per table), `module.mlir` (the StableHLO it was compiled from), `sources.json` (the source lines it came
from), `attachments/` and `weights/`. It holds no code that reading would run. The same computation gives the
same bytes.
Weights do not get smaller by packing: each lies in the file as it is, where an array may begin.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from neuron_tools.errors import NeuronToolsError
from neuron_tools.neff import limits
from neuron_tools.neff.files import write_whole
from neuron_tools.neff.manifest import FORMAT, VERSION, manifest_of
from neuron_tools.neff.program_file import program_from_pieces, program_pieces
from neuron_tools.neff.view_reader import ViewReader
from neuron_tools.records.program import Program
from neuron_tools.simulator.errors import ProgramError

MANIFEST, MODULE, SOURCES, ATTACHMENTS = "manifest.json", "module.mlir", "sources.json", "attachments/"
WEIGHTS = "weights/"
STAGES = "stages/"
_ALIGNMENT_BYTES = 64
_LOCAL_HEADER_BYTES = 30  # of a zip entry, before its name; the lengths of name and extra field end it
_PADDING = 0xD935  # the extra field by which Android's zipalign pads, too
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can tell
_AWS_HEADER_BYTES = 1024  # AWS's archives: a header, then a compressed tar archive
_GZIP = b"\x1f\x8b"
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, TypeError, KeyError, AttributeError, EOFError,
    NotImplementedError, OSError, RuntimeError, MemoryError, ProgramError,
)  # fmt: skip


class NeffError(NeuronToolsError):
    """A file is no compiled artifact that can be read, or cannot be written."""


@dataclass(frozen=True)
class Neff:
    """A compiled computation.

    Attributes:
        program: What the chip would run.
        stablehlo: Text of the StableHLO module it was compiled from; empty where there was none.
        options: Compiler options that were chosen, by name.
        sources: Text of each source line that the Program names, by file and line number.
        attachments: Further files, by name; a front end keeps there what it needs to compute values.
        stages: Programs of the cores behind the first, where several share the computation out.
        weights: Bytes of the weights that are part of the computation. Of an archive that was read they are
            views of its bytes.
    """

    program: Program
    stablehlo: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    weights: Sequence[memoryview] = ()
    stages: Sequence[Program] = ()

    @property
    def programs(self) -> tuple[Program, ...]:
        """The program of each core, the first one's first."""
        return (self.program, *self.stages)

    @property
    def manifest(self) -> dict[str, Any]:
        """What `manifest.json` tells: names, target, tensors, counts, warnings."""
        return manifest_of(self.program, self.options)

    def to_bytes(self) -> bytes:
        """The archive."""
        buffer = io.BytesIO()
        self.write_to(buffer)
        return buffer.getvalue()

    def write_to(self, file: IO[bytes]) -> None:
        """Write the archive; weights are not copied on the way."""
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in self._pieces().items():
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data, compresslevel=1)
            for number, weight in enumerate(self.weights):
                _write_aligned(archive, file, f"{WEIGHTS}{number}", weight)

    def _pieces(self) -> dict[str, bytes]:
        sources = {file: {str(n): text for n, text in lines.items()} for file, lines in self.sources.items()}
        return {
            MANIFEST: json.dumps(self.manifest, indent=1).encode(),
            **program_pieces(self.program),
            **_stage_pieces(self.stages),
            MODULE: self.stablehlo.encode(),
            SOURCES: json.dumps(sources).encode(),
            **{ATTACHMENTS + name: data for name, data in self.attachments.items()},
        }

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, what: str = "The artifact") -> Neff:
        """The computation that `to_bytes` put into an archive.

        Args:
            data: The archive.
            what: What error messages call it.

        Raises:
            NeffError: It is another kind of file, damaged, or of a newer version.
        """
        _refuse_foreign(data, what)
        try:
            with zipfile.ZipFile(ViewReader(data)) as archive:
                limits.check_archive(archive, len(data))
                entries = archive.infolist()
                stored = [entry for entry in entries if entry.filename.startswith(WEIGHTS)]
                pieces = {entry.filename: archive.read(entry) for entry in entries if entry not in stored}
                weights = [_view(memoryview(data), entry) for entry in stored]
            manifest = json.loads(pieces[MANIFEST])
            if manifest["format"] == FORMAT and manifest["version"] > VERSION:
                raise NeffError(
                    f"{what} was written by a newer Neuron Tools (format {manifest['version']}, this one "
                    f"reads {VERSION}): update Neuron Tools."
                )
            return replace(_from_pieces(pieces, manifest), weights=weights)
        except limits.LimitError as error:
            raise NeffError(f"{what} {error}: it is damaged, or made to fill the memory.") from error
        except _DAMAGE as error:
            raise NeffError(f"{what} is damaged and cannot be read: compile the model again.") from error


def core_count(data: bytes | memoryview) -> int:
    """NeuronCores that share an archive's computation out, by its table of contents alone.

    Args:
        data: The archive.

    Returns:
        The count; 1 for what is no archive, or a damaged one: running it says so.
    """
    try:
        with zipfile.ZipFile(ViewReader(data)) as archive:
            names = archive.namelist()
    except _DAMAGE:
        return 1
    return 1 + len({name.split("/")[1] for name in names if name.startswith(STAGES)})


def read_neff(path: Path) -> Neff:
    """Read a `.neff` file.

    Raises:
        NeffError: It is missing, another kind of file, damaged, or of a newer version.
    """
    if path.is_dir():
        raise NeffError(
            f"{path} is a folder: name a .neff file, or describe a profile by `neuron-profile info`."
        )
    try:
        limits.check_size(path.stat().st_size)
        data = path.read_bytes()
    except OSError as error:
        raise NeffError(f"{path} cannot be read: {error.strerror}.") from error
    except limits.LimitError as error:
        raise NeffError(f"{path} {error}: it is no compiled artifact of this program's.") from error
    return Neff.from_bytes(data, str(path))


def write_neff(neff: Neff, path: Path) -> None:
    """Write a `.neff` file; it appears whole or not at all.

    Raises:
        NeffError: The disk is full or the folder cannot be written.
    """
    try:
        write_whole(path, neff.write_to)
    except OSError as error:
        raise NeffError(f"{path} cannot be written: {error.strerror}.") from error


def _write_aligned(archive: zipfile.ZipFile, file: IO[bytes], name: str, data: memoryview) -> None:
    """Store an entry as it is, at a multiple of `_ALIGNMENT_BYTES`: its header is padded."""
    entry = zipfile.ZipInfo(name, _EPOCH)
    begin = file.tell() + _LOCAL_HEADER_BYTES + len(name) + 4
    padding = -begin % _ALIGNMENT_BYTES
    entry.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    archive.writestr(entry, data)


def _view(data: memoryview, entry: zipfile.ZipInfo) -> memoryview:
    """What an entry that is stored as it is holds, without a copy.

    Raises:
        ValueError: It is packed, or not what was written.
    """
    header = data[entry.header_offset : entry.header_offset + _LOCAL_HEADER_BYTES]
    begin = entry.header_offset + _LOCAL_HEADER_BYTES + sum(struct.unpack("<HH", header[26:30]))
    found = data[begin : begin + entry.file_size]
    whole = entry.compress_type == zipfile.ZIP_STORED and len(found) == entry.file_size
    if not whole or zlib.crc32(found) != entry.CRC:
        raise ValueError(entry.filename)
    return found


def _refuse_foreign(data: bytes | memoryview, what: str) -> None:
    if data[_AWS_HEADER_BYTES : _AWS_HEADER_BYTES + 2] == _GZIP:
        raise NeffError(
            f"{what} comes from AWS's compiler: what its instructions take is known to the chip only. "
            "Compile the model with Neuron Tools (torch_neuronx.trace) to simulate it."
        )
    if data[:2] != b"PK":
        raise NeffError(f"{what} is not a compiled artifact (.neff): it is another kind of file, or cut off.")


def _stage_pieces(stages: Sequence[Program]) -> dict[str, bytes]:
    return {
        f"{STAGES}{number}/{name}": data
        for number, program in enumerate(stages)
        for name, data in program_pieces(program).items()
    }


def _stages(pieces: Mapping[str, bytes]) -> list[Program]:
    """The programs that `_stage_pieces` took apart."""
    apart: dict[int, dict[str, bytes]] = {}
    for name, data in pieces.items():
        if name.startswith(STAGES):
            number, _, piece = name.removeprefix(STAGES).partition("/")
            apart.setdefault(int(number), {})[piece] = data
    return [program_from_pieces(apart[number]) for number in range(len(apart))]


def _from_pieces(pieces: Mapping[str, bytes], manifest: Mapping[str, Any]) -> Neff:
    if manifest["format"] != FORMAT:
        raise ValueError(manifest["format"])
    sources = json.loads(pieces[SOURCES])
    return Neff(
        program=program_from_pieces(pieces),
        stablehlo=pieces[MODULE].decode(),
        options=manifest["compiler_options"],
        sources={file: {int(n): text for n, text in lines.items()} for file, lines in sources.items()},
        attachments={
            name.removeprefix(ATTACHMENTS): data
            for name, data in pieces.items()
            if name.startswith(ATTACHMENTS)
        },
        stages=_stages(pieces),
    )
