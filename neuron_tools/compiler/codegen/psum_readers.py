"""Which engine takes what out of PSUM in a loop: the Scalar or the Vector engine, whoever has less to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import Engine

_PORT = "port"


class PsumReaders:
    """What the engines that read PSUM have to do in an iteration, ns, and the port that they may share.

    Example:
        >>> readers = PsumReaders(hardware.get("trn2"))
        >>> readers.add(Engine.SCALAR, 250.0)
        >>> readers.choose({Engine.SCALAR: 145.0, Engine.VECTOR: 196.0})
        <Engine.VECTOR: 1>
    """

    def __init__(self, core: NeuronCore) -> None:
        self._has_port = bool(core.vector_scalar_psum_port)
        self._load: dict[Engine | str, float] = {}

    def add(self, engine: Engine, duration_ns: float, *, in_psum: bool = True) -> None:
        """Work that an engine has in any case."""
        self._load = self._with(engine, duration_ns, duration_ns * in_psum)

    def choose(
        self, durations_ns: Mapping[Engine, float], *, share: float = 1.0, after_ns: float = 0.0
    ) -> Engine:
        """The engine for one more piece of work; the work is counted.

        Args:
            durations_ns: How long each engine would take.
            share: Iterations that have the work.
            after_ns: What the Vector engine has to do in SBUF where it is not the one.
        """

        loads = {
            engine: self._with(engine, share * duration, share * duration, share * after_ns)
            for engine, duration in durations_ns.items()
        }
        chosen = min(loads, key=lambda engine: (max(loads[engine].values()), sum(loads[engine].values())))
        self._load = loads[chosen]
        return chosen

    def _with(
        self, engine: Engine, busy_ns: float, port_ns: float, after_ns: float = 0.0
    ) -> dict[Engine | str, float]:
        """The load with one more piece of work."""
        load = defaultdict[Engine | str, float](float, self._load)
        load[engine] += busy_ns
        if self._has_port:
            load[_PORT] += port_ns
        if engine is not Engine.VECTOR:
            load[Engine.VECTOR] += after_ns
        return load
