"""NeuronGroup: one process group's collectives, their values and their times."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from neuron_tools import hardware
from neuron_tools.device import native
from neuron_tools.device.distributed import header, job, peers, session, timing
from neuron_tools.device.distributed.call import Call
from neuron_tools.device.distributed.errors import LostRankError, MismatchError, UnequalSplitsError
from neuron_tools.device.distributed.header import Header
from neuron_tools.device.distributed.host_clocks import HostOffset, measure_offset
from neuron_tools.device.distributed.operation import Lane, Operation
from neuron_tools.device.distributed.peers import Peer
from neuron_tools.device.distributed.replication import replication
from neuron_tools.device.distributed.source_line import BACKWARD, source_line
from neuron_tools.device.distributed.stand_in_values import values_of
from neuron_tools.hardware import Links
from neuron_tools.records.capture_log import COLLECTIVE_NUMBER_BITS
from neuron_tools.simulator.collectives import CollectiveCost

_links_clock = timing.LinkClock()
_known_peers: dict[int, Peer] = {}
_host_offset = HostOffset()


class IssuedCall:
    """A call with the moment of its issue.

    Attributes:
        issued: What `native.issue_collective` gave; None where it is not timed.
        ready_ns: This rank's virtual time at which its inputs are there.
        line: Where the user issued it.
        is_within_graph: Whether a compiled graph issued it: the ranks meet here, and the graph's own program
            moves the data.
    """

    def __init__(self, call: Call, sequence: int) -> None:
        self.call = call
        self.sequence = sequence
        self.line = source_line()
        self.session = session.current()
        self.issued: object = None
        self.ready_ns = header.NOT_TIMED
        self.is_within_graph = self.session is not None and not native.is_timing()
        if self.session is not None:
            device = call.device if call.device is not None else int(native.core().current_device())
            issued = native.issue_collective(device, self.line != BACKWARD)
            if issued is not None:
                self.issued, self.ready_ns = issued
                if call.device is None:
                    self.ready_ns = native.host_now_ns()

    @property
    def base_ns(self) -> int:
        """Job time of this process's virtual time 0: Unix time by the first rank's clock."""
        if self.session is None or not self.session.start_unix_ns:
            return 0
        return self.session.start_unix_ns - _host_offset.offset_ns

    @property
    def job_ready_ns(self) -> int:
        """`ready_ns` on the job's clock."""
        return self.ready_ns if self.ready_ns == header.NOT_TIMED else self.ready_ns + self.base_ns


class NeuronGroup:
    """The collectives of one group.

    Args:
        store: Where its ranks find each other.
        rank, size: Of this process in the group.
        timeout: How long ranks wait for each other.
        ranks: Global ranks of the group, in order.
        name: The group's name, the same on all ranks.

    Attributes:
        values: Moves the values.
        present: Places of the ranks that run.
        job: The job, where some of its ranks do not run.
    """

    def __init__(
        self,
        store: dist.Store,
        rank: int,
        size: int,
        timeout: timedelta,
        ranks: Sequence[int],
        name: str,
    ) -> None:
        self.rank, self.size, self.name = rank, size, name
        self.ranks = tuple(ranks) if len(ranks) == size else tuple(range(size))
        self.timeout = timeout
        self._store = store
        self.job = job.current()
        self.present = self.job.places(self.ranks) if self.job is not None else tuple(range(size))
        self.values = values_of(store, rank, size, timeout, self.present)
        self._lane = Lane(self._perform, f"neuron-{name}")
        self._lock = threading.Lock()
        self._sequence = 0
        self._ended_ns = 0
        self._last: tuple[Header, ...] = ()
        self._signatures: dict[tuple[object, ...], int] = {}
        self._transfers: Counter[tuple[int, int]] = Counter()
        self._links: tuple[Links, tuple[int, ...]] | None = None
        self._session_number = session.number()
        self._simulated = self.ranks
        self._replication = replication(size, 0)
        self._meet_peers()

    @property
    def sequence(self) -> int:
        """Collectives that this rank has issued."""
        return self._sequence

    def issue(self, call: Call) -> Operation:
        """Begin a collective."""
        with native.paused_clock():
            operation = Operation(call)
            with self._lock:
                issued = IssuedCall(call, self._sequence)
                self._sequence += 1
                item = (operation, issued, self._header(issued))
                if call.asynchronous:
                    self._lane.submit(item, inline=False)
            if not call.asynchronous:
                self._lane.submit(item, inline=True)
        return operation

    def close(self) -> None:
        """Let go of the thread."""
        self._lane.close()

    def cost(self, call: Call, ends: tuple[int, ...] | None = None) -> CollectiveCost | None:
        """What a call costs on the simulated links; None for host tensors and where nothing is timed.

        Args:
            ends: Places in the group of those that take part; all if None.
        """
        self._begin_session()
        known = self._simulated_links()
        if known is None or call.device is None:
            return None
        net, cores = known
        chosen = cores if ends is None else tuple(cores[end] for end in ends)
        return timing.collective_cost(call.kind, call.byte_count, chosen, net)

    def reserve(self, issued: IssuedCall, spent: CollectiveCost | None) -> int:
        """Take this rank's links for a call; returns until when they were taken, in job time."""
        known = self._simulated_links()
        if spent is None or known is None or issued.is_within_graph or issued.ready_ns == header.NOT_TIMED:
            return 0
        level = timing.level_of(known[1], known[0])
        return _links_clock.reserve(level, issued.job_ready_ns, spent.transfer_ns)

    def record(
        self, issued: IssuedCall, placed: timing.Placement, sequence: int, pair: tuple[int, int] | None = None
    ) -> int:
        """Put a placed call into the log; returns its end in this rank's virtual time."""
        start_ns = max(placed.start_ns - issued.base_ns, 0)
        end_ns = max(placed.end_ns - issued.base_ns, start_ns)
        define = issued.session.define if issued.session is not None else None
        if issued.issued is not None and define is not None and issued.call.device is not None:
            number = self._signature(issued, placed.cost, pair)
            title = f"c10d::{issued.call.title}"
            numbered = self.ranks[placed.last] << COLLECTIVE_NUMBER_BITS | sequence
            native.record_collective(
                issued.issued,
                number,
                title,
                numbered,
                issued.call.byte_count,
                issued.ready_ns,
                start_ns,
                end_ns,
            )
        return end_ns

    def lost(self, issued: IssuedCall, error: Exception) -> LostRankError:
        """The sentence for an operation that gloo gave up."""
        call, line = issued.call, issued.line
        gone = [rank for rank in self.ranks if rank in _known_peers and _known_peers[rank].is_gone()]
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if gone:
            who = f"{_ranks(gone)} {'has' if len(gone) == 1 else 'have'} ended"
        elif "imed out" in text or "imeout" in text:
            gone = self._missing(issued)
            who = f"{_ranks(gone)} did not come in time" if gone else "not all ranks came in time"
        else:
            who = "the connection to another rank was lost"
        last = self._last_seen(gone)
        return LostRankError(
            f"Rank {self.ranks[self.rank]}: {call.text} at {line} (collective {issued.sequence} of ranks "
            f"{list(self.ranks)}) failed: {who}{last}. [{text}]"
        )

    def _missing(self, issued: IssuedCall) -> list[int]:
        """Ranks that wait for nobody: those that do say so in the store, as this one does here."""
        keys = [f"waiting/{issued.call.title}/{issued.sequence}/{place}" for place in range(self.size)]
        try:
            self._store.set(keys[self.rank], issued.line)
            time.sleep(_GRACE_S)
            return [self.ranks[place] for place in self.present if not self._store.check([keys[place]])]
        except RuntimeError:
            return []

    def _last_seen(self, gone: Sequence[int]) -> str:
        """What ranks that are gone did last."""
        seen = [each for each in self._last if not gone or self.ranks[each.source] in gone]
        if not seen or not gone:
            return ""
        return f"; it last took part in collective {seen[0].sequence}: {seen[0].text}"

    def _begin_session(self) -> None:
        """Forget what belongs to another session's time and machine."""
        if self._session_number != session.number():
            self._session_number, self._ended_ns, self._links = session.number(), 0, None
            _links_clock.begin(session.number())

    def _header(self, issued: IssuedCall) -> Header:
        call = issued.call
        agreed = header.fingerprint(f"{call.title}|{call.dtype}|{call.agreed}")
        free_ns = self.reserve(issued, self.cost(call))
        text = f"{call.text} at {issued.line}"
        return Header(issued.sequence, agreed, issued.job_ready_ns, free_ns, self.rank, text)

    def _perform(self, item: tuple[Operation, IssuedCall, Header]) -> None:
        operation, issued, own = item
        try:
            headers = self._exchange(own, issued.call.timeout)
            problem = header.mismatch(headers, self.ranks, self.rank)
            if problem is not None:
                raise MismatchError(problem)
            self._last = headers
            self._move(issued, headers)
            operation.succeed(self._place(issued, headers))
        except MismatchError as error:
            operation.fail(str(error))
        except Exception as error:
            operation.fail(str(self.lost(issued, error)))

    def _move(self, issued: IssuedCall, headers: tuple[Header, ...]) -> None:
        try:
            issued.call.values()
        except UnequalSplitsError as error:
            sender, receiver = (
                f"rank {self.ranks[place]} ({headers[place].text})"
                for place in (error.sender, error.receiver)
            )
            raise MismatchError(
                f"Collective {issued.sequence} of ranks {list(self.ranks)} does not match: {sender} sends "
                f"{error.sent} elements to {receiver}, which takes {error.taken}."
            ) from error

    def _exchange(self, own: Header, timeout: timedelta | None) -> tuple[Header, ...]:
        if self.values.gloo is None or len(self.present) == 1:
            return (own,)
        received = header.empty(len(self.present))
        options = c10d.AllgatherOptions()
        if timeout is not None and timeout.total_seconds() > 0:
            options.timeout = timeout
        self.values.gloo.allgather([received], [own.pack()], options).wait()
        return header.unpack(received)

    def _place(self, issued: IssuedCall, headers: tuple[Header, ...]) -> int | None:
        """Where the call stands in time; its end in this rank's virtual time."""
        if issued.session is None or issued.ready_ns == header.NOT_TIMED:
            return None
        spent = (None if issued.is_within_graph else self.cost(issued.call)) or _NO_COST
        placed = timing.place(headers, spent, self._ended_ns if issued.call.device is not None else 0)
        if placed is None:
            return None
        if issued.call.device is None or issued.is_within_graph:
            return placed.start_ns - issued.base_ns
        self._ended_ns = placed.end_ns
        return self.record(issued, placed, issued.sequence)

    def _signature(self, issued: IssuedCall, spent: CollectiveCost, pair: tuple[int, int] | None) -> int:
        call, define = issued.call, issued.session.define if issued.session is not None else None
        ends = self._simulated if pair is None else tuple(self.ranks[end] for end in pair)
        key = (
            define,
            call.operation,
            call.dtype,
            call.elements,
            call.input_bytes,
            call.output_bytes,
            ends,
            spent,
        )
        if key not in self._signatures and define is not None:
            self._signatures[key] = define(
                {
                    "operation": call.operation,
                    "title": call.title,
                    "algorithm": spent.algorithm,
                    "dtype": call.dtype,
                    "elements": call.elements,
                    "input_bytes": call.input_bytes,
                    "output_bytes": call.output_bytes,
                    "bus_factor": spent.bus_factor,
                    "ranks": list(ends),
                    "running": self._replication.running,
                    "replicas": self._replication.replicas,
                    "over_replicas": len(ends) > len(self.ranks),
                    "group": self.name if pair is None else f"{self.name} {ends[0]}>{ends[1]}",
                    "steps": spent.steps,
                    "pair": pair is not None,
                }
            )
        return self._signatures[key]

    def _simulated_links(self) -> tuple[Links, tuple[int, ...]] | None:
        """The links and this group's cores on them."""
        if self._links is None:
            now = session.current()
            if now is None:
                return None
            net = _machine_links(now.core)
            if self.job is None:
                cores = peers.cluster_cores(_known_peers, net)
            else:
                cores = {rank: rank for rank in range(self.job.ranks)}
            self._replication = replication(len(cores), now.simulated_ranks)
            if self._replication.replicas > 1:
                cores = {rank: rank for rank in range(self._replication.simulated)}
            self._simulated = self._replication.simulated_ranks(self.ranks)
            own = tuple(cores.get(rank, rank) for rank in self._simulated)
            self._links = (peers.shared_links(net, own, list(cores.values())), own)
        return self._links

    def _meet_peers(self) -> None:
        """Tell each other where every rank runs."""
        is_whole_job = not dist.is_initialized()  # its default group is being made
        if is_whole_job:
            _known_peers.clear()
            _links_clock.clear()
        own = peers.this_rank(self.ranks[self.rank])
        if self.values.gloo is None or len(self.present) == 1:
            _known_peers[own.rank] = own
            return
        place = self.present.index(self.rank)
        with native.paused_clock():
            received = list(
                torch.zeros(len(self.present), peers.PEER_BYTES, dtype=torch.uint8, device="cpu").unbind(0)
            )
            self.values.gloo.allgather([received], [own.pack()], c10d.AllgatherOptions()).wait()
        for packed in received:
            peer = peers.unpack(packed)
            _known_peers[peer.rank] = peer
        if is_whole_job:
            global _host_offset
            with native.paused_clock():
                members = [_known_peers[self.ranks[each]] for each in self.present]
                _host_offset = measure_offset(self.values.gloo, place, members)


_GRACE_S = 0.5  # between the moments at which ranks of one collective give up


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {list(ranks)}"


_NO_COST = CollectiveCost("local", 0, 0.0, 0.0, 0, 0.0)


@lru_cache(maxsize=8)
def _machine_links(core: hardware.NeuronCore) -> Links:
    return hardware.links(hardware.device_of(core))
