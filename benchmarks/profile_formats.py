"""Other tools' formats: importing a torch.profiler trace against HTA, memory of a long one, Perfetto export.

Each import runs in a process of its own, so that its peak memory is its own; loading the libraries is not
counted, nor is compiling or loading the scanners; compiling happens once per installation and is told apart.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from benchmarks import kineto_trace, synthetic_profile
from benchmarks.child import peer_python, run_json, run_module
from benchmarks.figures import Figure, Peer, Target

NAME = "benchmarks.profile_formats"
HTA = "HolisticTraceAnalysis==0.5.0"
SPEED_TARGET, MEMORY_TARGET = Target(">=", 10), Target("<=", 0.3)
LONG_MEMORY_TARGET = Target("<=", 2048)
EXPORT_TARGET = Target(">=", 1_000_000, "compiled")
EVENTS, QUICK_EVENTS = 1_000_000, 200_000
"""The libraries alone take most of the memory of a quick run: its share of HTA's has no target."""
LONG_FILE_BYTES = 2_000_000_000
EVENT_BYTES = 290
SPANS, QUICK_SPANS = 10_000_000, 500_000
PEER_EXPORT_SPANS = 20_000
ROUNDS = 2
MIB = 1 << 20

_LOAD_WITH_HTA = """
import json, resource, sys, time
from hta.common.trace import Trace
began, cpu = time.perf_counter(), time.process_time()
trace = Trace(trace_files={0: sys.argv[1]}, trace_dir="/")
trace.parse_traces(max_ranks=1, use_multiprocessing=False)
print(json.dumps({"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu,
                  "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def run(quick: bool = False) -> list[Figure]:
    """The figures of import and export."""
    with tempfile.TemporaryDirectory(prefix="neuron-benchmark-") as name:
        folder = Path(name)
        figures = import_figures(folder, QUICK_EVENTS if quick else EVENTS)
        if not quick:
            figures.append(long_import_figure(folder))
        figures += export_figures(folder, QUICK_SPANS if quick else SPANS)
    return figures


def import_figures(folder: Path, events: int) -> list[Figure]:
    """Import of a torch.profiler trace, and what HTA needs to load it, in turn."""
    trace = folder / "trace.json"
    kineto_trace.write(trace, events)
    compile_s = run_module(NAME, "warm", str(trace), str(folder / "warm.nprof"))["compile_s"]
    python = peer_python(HTA.replace("==", "-").lower(), HTA)
    ours, peers = [], []
    for round_ in range(ROUNDS):
        ours.append(run_module(NAME, "import", str(trace), str(folder / f"{round_}.nprof")))
        if python is not None:
            peers.append(run_json([str(python), "-c", _LOAD_WITH_HTA, str(trace)]))
    trace.unlink()
    seconds = min(one["wall_s"] for one in ours)
    memory = max(one["peak_bytes"] for one in ours) / MIB
    note = f"{events:,} events, best of {ROUNDS}; compiling the scanners once took {compile_s:.1f} s"
    title = f"import of {events:,} torch.profiler events"
    if not peers:
        note += "; HTA could not be installed"
        return [Figure(title, seconds, "s", note=note), Figure(f"memory of the {title}", memory, "MiB")]
    peer_seconds = min(one["wall_s"] for one in peers)
    peer_memory = min(one["peak_bytes"] for one in peers) / MIB
    cpu = min(one["cpu_s"] for one in peers) / min(one["cpu_s"] for one in ours)
    return [
        Figure(title, seconds, "s", peer=Peer("HTA 0.5.0", peer_seconds), note=note),
        Figure(f"{title}, times as fast as HTA", peer_seconds / seconds, "x", SPEED_TARGET, note="wall time"),
        Figure(f"{title}, processor time", cpu, "x", note="HTA's processor time over ours"),
        Figure(f"memory of the {title}", memory, "MiB", peer=Peer("HTA 0.5.0", peer_memory)),
        Figure(
            f"memory of the {title}, share of HTA's",
            memory / peer_memory,
            "",
            MEMORY_TARGET if events >= EVENTS else None,
        ),
    ]


def long_import_figure(folder: Path) -> Figure:
    """Peak memory of importing a trace of two gigabytes."""
    trace = folder / "long.json"
    kineto_trace.write(trace, LONG_FILE_BYTES // EVENT_BYTES)
    size = trace.stat().st_size
    found = run_module(NAME, "import", str(trace), str(folder / "long.nprof"))
    trace.unlink()
    note = f"{size / 1e9:.2f} GB in {found['wall_s']:.1f} s"
    return Figure(
        "peak memory of a 2 GB JSON import", found["peak_bytes"] / MIB, "MiB", LONG_MEMORY_TARGET, note=note
    )


def export_figures(folder: Path, spans: int) -> list[Figure]:
    """Perfetto export of a profile with instructions, transfers, operations and flows."""
    profile = folder / "spans.nprof"
    synthetic_profile.write(profile, spans)
    found = run_module(NAME, "export", str(profile), str(folder / "spans.pftrace"))
    rate = found["slices"] / found["wall_s"]
    note = f"{found['slices']:,} slices in {found['wall_s']:.1f} s, {found['bytes'] / 1e6:.0f} MB"
    name = "Perfetto export, wall time"
    peer = Peer("protobuf's own Python builder", _plain_export_rate())
    return [
        Figure(name, rate, "spans/s", EXPORT_TARGET, peer, note),
        Figure("Perfetto export, processor time", found["slices"] / found["cpu_s"], "spans/s"),
    ]


def _plain_export_rate() -> float:
    """Spans a second of the generated classes, with name, two arguments and a source line."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    began = perf_counter()
    trace = protos.Trace()
    for number in range(PEER_EXPORT_SPANS):
        packet = trace.packet.add(timestamp=number, trusted_packet_sequence_id=1)
        event = packet.track_event
        event.type, event.track_uuid, event.name = protos.TrackEvent.TYPE_SLICE_BEGIN, 7, "MATMUL"
        event.debug_annotations.add(name="id", int_value=number)
        event.debug_annotations.add(name="operands", string_value="src dst")
        event.source_location.file_name, event.source_location.line_number = "train.py", 12
        end = trace.packet.add(timestamp=number + 1, trusted_packet_sequence_id=1).track_event
        end.type, end.track_uuid = protos.TrackEvent.TYPE_SLICE_END, 7
    trace.SerializeToString()
    return PEER_EXPORT_SPANS / (perf_counter() - began)


def _import(trace: str, profile: str) -> dict[str, float]:
    from neuron_tools.profile.importers import import_traces

    _warm(trace, f"{profile}.first")
    began, cpu = perf_counter(), process_time()
    import_traces([trace], profile)
    return {"wall_s": perf_counter() - began, "cpu_s": process_time() - cpu}


def _warm(trace: str, profile: str) -> dict[str, float]:
    """Imports the first events of a trace, which compiles the scanners, or loads them if they are on disk."""
    from neuron_tools.profile.importers import import_traces

    short = Path(profile).with_suffix(".json")
    with Path(trace).open() as stream:
        short.write_text("".join(next(stream) for _ in range(2_000)))
    began = perf_counter()
    import_traces([short], profile)
    return {"compile_s": perf_counter() - began}


def _export(profile: str, destination: str) -> dict[str, float]:
    from neuron_tools.profile.export import export_perfetto
    from neuron_tools.profile.reader import open_profile

    with open_profile(profile) as opened:
        began, cpu = perf_counter(), process_time()
        report = export_perfetto(opened, destination)
        wall, used = perf_counter() - began, process_time() - cpu
    size = Path(destination).stat().st_size
    return {"wall_s": wall, "cpu_s": used, "slices": report.counts["slices"], "bytes": size}


def main() -> None:
    """Measures one thing in this process: `import`, `warm` or `export`, a source and a destination."""
    what, source, destination = sys.argv[1:]
    found = {"import": _import, "warm": _warm, "export": _export}[what](source, destination)
    found["peak_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(found))


if __name__ == "__main__":
    main()
