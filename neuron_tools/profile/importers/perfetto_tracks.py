"""The tree of tracks of a Perfetto trace: descriptors in, processes and tracks of the profile out."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.profile.importers.names import split_rank
from neuron_tools.profile.importers.perfetto_arguments import text_of
from neuron_tools.profile.importers.recording import Process, Recording, Track
from neuron_tools.profile.perfetto_fields import told_device

MOST_LEVELS = 64
OVERLAP = " (overlapping)"
_UNITS = {1: "ns", 2: "count", 3: "bytes"}


class PerfettoTracks:
    """Gathers descriptors, and numbers the tracks that events name."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._descriptors: dict[int, Any] = {}
        self._process_names: dict[int, str] = {}
        self._thread_names: dict[tuple[int, int], str] = {}
        self._default_of: dict[int, int] = {}
        self._lanes: dict[tuple[int, bool], int] = {}
        self._tracks: dict[tuple[int, bool], int] = {}
        self._by_name: dict[tuple[int, int | None, str, str], int] = {}
        self._processes: dict[int, int] = {}

    def add_descriptor(self, content: bytes, sequence: int) -> None:
        """Takes a TrackDescriptor; fields of one track may come in several."""
        try:
            descriptor = protos.TrackDescriptor.FromString(content)
        except DecodeError:
            self._recording.warn("Damaged track descriptors were left out.")
            return
        known = self._descriptors.get(descriptor.uuid)
        if known is not None:
            known.MergeFrom(descriptor)
        else:
            self._descriptors[descriptor.uuid] = descriptor
        if descriptor.HasField("thread") or descriptor.HasField("process"):
            self._default_of.setdefault(sequence, descriptor.uuid)

    def add_process_tree(self, content: bytes) -> None:
        """Takes a ProcessTree: names of processes and threads that have no descriptors."""
        try:
            tree = protos.ProcessTree.FromString(content)
        except DecodeError:
            return
        for process in tree.processes:
            if process.cmdline:
                self._process_names[process.pid] = text_of(process.cmdline[0])
        for thread in tree.threads:
            self._thread_names[(thread.tgid, thread.tid)] = text_of(thread.name)

    def set_default(self, sequence: int, uuid: int) -> None:
        """The track of events of a sequence that name none."""
        self._default_of[sequence] = uuid

    def default_track(self, sequence: int) -> int:
        """As set, or the sequence's own thread; 0 where there is none."""
        return self._default_of.get(sequence, 0)

    def counter(self, uuid: int) -> tuple[float, bool]:
        """What a counter's values are multiplied by, and whether they are differences."""
        descriptor = self._descriptors.get(uuid)
        if descriptor is None or not descriptor.HasField("counter"):
            return 1.0, False
        return float(descriptor.counter.unit_multiplier or 1), bool(descriptor.counter.is_incremental)

    def lane(self, uuid: int, *, is_counter: bool) -> int:
        """A number for the events of a track; the track itself is placed by `finish`."""
        return self._lanes.setdefault((uuid, is_counter), len(self._lanes))

    def finish(self) -> None:
        """Builds the processes and tracks that the events named."""
        for uuid, is_counter in self._lanes:
            self._recording.add_lane(self._track(uuid, is_counter))

    def _track(self, uuid: int, is_counter: bool) -> int:
        key = (uuid, is_counter)
        if key not in self._tracks:
            self._tracks[key] = self._new_track(uuid, is_counter)
        return self._tracks[key]

    def _new_track(self, uuid: int, is_counter: bool) -> int:
        descriptor = self._descriptors.get(uuid)
        if descriptor is None:
            name = "counter" if is_counter else "events"
            return self._add(
                Track(self._process_of(0), f"{name} {uuid}" if uuid else name, _kind(is_counter))
            )
        process, parent = self._place(descriptor)
        if descriptor.HasField("thread"):
            return self._add(self._thread(descriptor.thread, process, descriptor))
        twin = self._thread_of_overlap(descriptor, process)
        if twin is not None:
            return twin
        counter = descriptor.counter if descriptor.HasField("counter") else None
        unit = None if counter is None else text_of(counter.unit_name) or _UNITS.get(counter.unit)
        name = _name(descriptor) or ("counter" if is_counter else "events")
        return self._add(_track(descriptor, process, name, _kind(is_counter), parent, unit))

    def _thread_of_overlap(self, descriptor: Any, process: int) -> int | None:
        """The thread whose overlapping spans a track holds, as our own export sets them apart."""
        name = _name(descriptor)
        if not name.endswith(OVERLAP):
            return None
        wanted = name.removesuffix(OVERLAP)
        for key, other in self._descriptors.items():
            is_twin = other.HasField("thread") and text_of(other.thread.thread_name) == wanted
            if is_twin and self._process_of(self._process_uuid(int(other.thread.pid))) == process:
                return self._track(key, False)
        return None

    def _thread(self, thread: Any, process: int, descriptor: Any) -> Track:
        name = (
            text_of(thread.thread_name)
            or self._thread_names.get((thread.pid, thread.tid))
            or _name(descriptor)
        )
        title = name or f"Thread {thread.tid}"
        return Track(process, title, "thread", thread_id=int(thread.tid), sort_index=_order(descriptor))

    def _place(self, descriptor: Any) -> tuple[int, int | None]:
        """Process of a track, and the track that it stands under."""
        if descriptor.HasField("process"):
            return self._process_of(descriptor.uuid), None
        if descriptor.HasField("thread"):
            return self._process_of(self._process_uuid(int(descriptor.thread.pid))), None
        chain = self._ancestors(descriptor)
        parent: int | None = None
        root = 0
        if chain and chain[0].HasField("process"):
            root = chain[0].uuid
        elif chain and chain[0].HasField("thread"):
            root = self._process_uuid(int(chain[0].thread.pid))
        process = self._process_of(root)
        for above in chain:
            if above.HasField("process"):
                continue
            heading = (
                self._thread(above.thread, process, above)
                if above.HasField("thread")
                else _track(above, process, _name(above) or "group", "other", parent)
            )
            parent = self._add(heading)
        return process, parent

    def _ancestors(self, descriptor: Any) -> list[Any]:
        """Descriptors above a track, outermost first; a chain that turns in a circle is cut."""
        chain: list[Any] = []
        above = self._descriptors.get(descriptor.parent_uuid) if descriptor.parent_uuid else None
        while above is not None and len(chain) < MOST_LEVELS and above.uuid != descriptor.uuid:
            chain.insert(0, above)
            if above.HasField("process") or not above.parent_uuid:
                break
            above = self._descriptors.get(above.parent_uuid)
        return chain

    def _process_uuid(self, pid: int) -> int:
        """The descriptor of a process, or minus its number where it has none."""
        for uuid, descriptor in self._descriptors.items():
            if descriptor.HasField("process") and descriptor.process.pid == pid:
                return uuid
        return -pid

    def _process_of(self, uuid: int) -> int:
        if uuid not in self._processes:
            self._processes[uuid] = self._recording.add_process(self._process(uuid))
        return self._processes[uuid]

    def _process(self, uuid: int) -> Process:
        descriptor = self._descriptors.get(uuid)
        if descriptor is None:
            pid = -uuid if uuid < 0 else None
            return Process(name=None if pid is None else self._process_names.get(pid), process_id=pid)
        pid = int(descriptor.process.pid)
        name = text_of(descriptor.process.process_name) or self._process_names.get(pid) or f"Process {pid}"
        rank, name = split_rank(name)
        return Process(name=name, process_id=pid, rank=rank)

    def _add(self, track: Track) -> int:
        """Adds a track; one with the same name in the same place is the same, as viewers show it."""
        key = (track.process, track.parent, track.name, f"{track.kind} {track.thread_id}")
        if key not in self._by_name:
            self._by_name[key] = self._recording.add_track(track)
        return self._by_name[key]


def _track(
    descriptor: Any, process: int, name: str, kind: str, parent: int | None, unit: str | None = None
) -> Track:
    """A track below its process or a heading, of the device that its description names."""
    device, stream = told_device(text_of(descriptor.description))
    number = None if stream is None or stream < 0 else stream
    kind = kind if stream is None else "stream"
    return Track(process, name, kind, parent, device, number, _order(descriptor), unit)


def _order(descriptor: Any) -> int | None:
    """Place among its siblings; None where it has none."""
    return int(descriptor.sibling_order_rank) if descriptor.HasField("sibling_order_rank") else None


def _name(descriptor: Any) -> str:
    names = (descriptor.name, descriptor.static_name, getattr(descriptor, "atrace_name", ""))
    return next((text_of(name) for name in names if name), "")


def _kind(is_counter: bool) -> str:
    return "counter" if is_counter else "other"
