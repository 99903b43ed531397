"""Messages between two ranks: both post at once, and the bytes move when both are ready."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from neuron_tools.device import native
from neuron_tools.device.distributed import header, timing
from neuron_tools.device.distributed.call import Call
from neuron_tools.device.distributed.errors import InvalidCallError, MismatchError
from neuron_tools.device.distributed.group import IssuedCall, NeuronGroup
from neuron_tools.device.distributed.header import Header
from neuron_tools.device.distributed.host_values import Carrier
from neuron_tools.device.distributed.operation import Operation

# Above those that programs use; by role, as two messages of one tag may go both ways at once.
_SENDER_TAGS, _RECEIVER_TAGS = 1 << 28, 1 << 29


class Message(Operation):
    """One side of a message.

    Args:
        group: The group.
        call: What is sent or received.
        peer: The other rank's place in the group; None where any may send.
        tag: The user's.
        is_send: Which side this is.
        carrier: The bytes that gloo works on; None where no values move.
    """

    def __init__(
        self,
        group: NeuronGroup,
        call: Call,
        peer: int | None,
        tag: int,
        is_send: bool,
        carrier: Carrier | None,
    ) -> None:
        super().__init__(call)
        self._group, self._peer, self._tag, self._is_send = group, peer, tag, is_send
        self._carrier = carrier
        self._finishing = threading.Lock()
        self._watcher: threading.Thread | None = None
        with native.paused_clock():
            self._issued = IssuedCall(call, 0)
            self._post()

    def is_completed(self) -> bool:
        """Whether it is there, or failed."""
        if self._watcher is None and not self._done.is_set():
            # Gloo's messages tell nothing until somebody waits for them.
            self._watcher = threading.Thread(target=self.await_values, daemon=True)
            self._watcher.start()
        return self._done.is_set()

    def await_values(self, timeout_s: float = 0.0) -> None:
        """Wait for the other side, outside virtual time."""
        with native.paused_clock(), self._finishing:
            if self._done.is_set():
                return
            try:
                self._finish()
            except MismatchError as error:
                self.fail(str(error))
            except Exception as error:
                self.fail(str(self._group.lost(self._issued, error)))

    def _post(self) -> None:
        group, self._free_ns = self._group, 0
        self._works: list[Any] = []
        self._value: Any = None
        self._theirs: list[torch.Tensor] = []
        if self._peer is not None and self._peer not in group.present:
            self._stand_in(self._peer)
            return
        gloo = group.values.gloo
        tensors = [self._carrier.tensor] if self._carrier is not None else []
        if self._peer is None:
            self._value = gloo.recv_anysource(tensors or [torch.empty(0, device="cpu")], self._tag)
            return
        act = gloo.send if self._is_send else gloo.recv
        if tensors:
            self._value = act(tensors, group.present.index(self._peer), self._tag)
        self._exchange_headers(self._peer)

    def _stand_in(self, peer: int) -> None:
        """The other side does not run: it counts as ready, where no values are wanted of it.

        Raises:
            InvalidCallError: It would have to send values.
        """
        group = self._group
        if group.job is not None and group.job.asks:
            group.job.answer(group.ranks)
        if not self._is_send and self._carrier is not None:
            raise InvalidCallError(
                f"Rank {group.ranks[group.rank]} receives values from rank {group.ranks[peer]}, which does "
                "not run: name it in --run-ranks too, or use --run-ranks auto."
            )
        self._spent = group.cost(self.call, self._ends(peer))
        self._free_ns = group.reserve(self._issued, self._spent)

    def _exchange_headers(self, peer: int) -> None:
        """Tell the other side when this one is ready, and hear the same.

        Host tensors go as gloo sends them: the sender does not wait for the receiver.
        """
        gloo = self._group.values.gloo
        end = self._group.present.index(peer)
        own, other = (_SENDER_TAGS, _RECEIVER_TAGS) if self._is_send else (_RECEIVER_TAGS, _SENDER_TAGS)
        self._spent = self._group.cost(self.call, self._ends(peer))
        self._free_ns = self._group.reserve(self._issued, self._spent)
        self._theirs = header.empty(1)
        on_host = self.call.device is None
        if self._is_send or not on_host:
            self._own = self._header().pack()
            self._works.append(gloo.send([self._own], end, own + self._tag))
        if not self._is_send or not on_host:
            self._works.append(gloo.recv(self._theirs, end, other + self._tag))

    def _ends(self, peer: int) -> tuple[int, int]:
        """Sender and receiver."""
        return (self._group.rank, peer) if self._is_send else (peer, self._group.rank)

    def _header(self) -> Header:
        agreed = header.fingerprint(f"{self.call.dtype}|{self.call.elements}")
        text = f"{self.call.text} at {self._issued.line}"
        ready_ns = self._issued.job_ready_ns
        return Header(0, agreed, ready_ns, self._free_ns, self._group.rank, text)

    def _finish(self) -> None:
        if self._value is not None:
            self._value.wait()
        known = self._group.present
        self.source = self._peer if self._peer is not None else known[int(self._value._source_rank())]
        if self._peer is None:
            self._exchange_headers(self.source)
        for work in self._works:
            work.wait()
        if not self._is_send and self._carrier is not None:
            self._carrier.deliver()
        self.succeed(self._place())

    def _place(self) -> int | None:
        own = self._header()
        theirs = header.unpack(self._theirs)[0] if self._theirs else own
        on_host = self.call.device is None
        if not on_host and theirs.fingerprint != own.fingerprint:
            group = self._group
            raise MismatchError(
                f"A message does not match: rank {group.ranks[group.rank]} calls {own.text}, "
                f"rank {group.ranks[self.source]} calls {theirs.text}."
            )
        if self._issued.ready_ns == header.NOT_TIMED:
            return None
        heard = (own,) if on_host and self._is_send else (own, theirs)
        if on_host:
            return max(each.ready_ns for each in heard) - self._issued.base_ns
        if self._spent is None:
            return None
        placed = timing.place(heard, self._spent, 0)
        if placed is None:
            return None
        ends = self._ends(self.source)
        return self._group.record(self._issued, placed, _next_number(self._group, ends), ends)


_numbers: dict[str, Counter[tuple[int, int]]] = {}
_numbers_lock = threading.Lock()


def _next_number(group: NeuronGroup, ends: tuple[int, int]) -> int:
    """Which message of a pair this is, counted in the order in which they end here."""
    with _numbers_lock:
        counts = _numbers.setdefault(group.name, Counter())
        counts[ends] += 1
        return counts[ends] - 1


def message_call(
    title: str, operation: str, tensor: torch.Tensor, device: int | None, nothing: Callable[[], None]
) -> Call:
    """The call of one side."""
    from neuron_tools.device.distributed.call import dtype_name
    from neuron_tools.records.program import CollectiveKind

    return Call(
        title=title,
        operation=operation,
        kind=CollectiveKind.PERMUTE,
        outputs=[tensor],
        values=nothing,
        device=device,
        elements=tensor.numel(),
        dtype=dtype_name(tensor.dtype),
        input_bytes=tensor.nbytes,
        output_bytes=tensor.nbytes,
    )
