"""Records what PyTorch runs on the `neuron` device: the device's C++ core does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from neuron_tools.capture.module_calls import ModuleCalls
from neuron_tools.capture.runtimes.published import Usages
from neuron_tools.capture.runtimes.runtime import Recording
from neuron_tools.capture.tensor_names import TensorNames
from neuron_tools.capture.untraced import untraced
from neuron_tools.device.driver.runtime import torch_driver
from neuron_tools.records.capture_log import EVENTS_FILE
from neuron_tools.records.graph_break import GRAPH_BREAK

if TYPE_CHECKING:
    from neuron_tools.capture.host_samples.sampler import HostSampler
    from neuron_tools.device.distributed.session import Define
    from neuron_tools.records.executable import Executable


class TorchRuntime:
    """The runtime of a process that uses the `neuron` PyTorch device."""

    def __init__(self) -> None:
        self._hooks: list[Callable[[], object]] = []
        self._module_count = 0
        self._recording: Recording | None = None
        self._sampler: HostSampler | None = None

    def prepare(self) -> None:
        """Build and load the device."""
        from neuron_tools.device import native

        native.core()

    def facts(self) -> Mapping[str, Any]:
        """PyTorch's version, and which NeuronCores it has."""
        import torch

        from neuron_tools.device import native
        from neuron_tools.device.driver.cores import first_core

        first = first_core(int(native.core().device_count()))
        return {"torch": torch.__version__, "first_core": first}

    def start(self, recording: Recording) -> None:
        """Configure the device as the simulated one, and record."""
        from neuron_tools.device import native

        self._recording = recording
        self._configure_time(recording)
        self._describe_device(recording)
        self._count_for_driver(recording, profile=str(recording.options.directory))
        native.start_recording(
            str(recording.directory / EVENTS_FILE),
            untraced(recording.store.for_operation),
            untraced(recording.definitions.stack),
            untraced(recording.definitions.name),
            untraced(recording.store.for_fusion),
        )
        self._install_hooks(recording)
        self._time_collectives(recording, recording.definitions.collective)
        if recording.options.samples_host:
            self._sample_host(recording)

    def stop(self) -> int:
        """Take the hooks out and write what was recorded."""
        from neuron_tools.device import native

        if self._sampler is not None:
            self._sampler.stop()
        host_end_ns = native.host_now_ns()
        self._warn_of_graph_breaks()
        self._take_hooks_out()
        native.settle()
        torch_driver.end_session()
        native.stop_recording()
        native.set_eager_fusion("off")
        native.set_clock("measured")
        return host_end_ns

    def abandon(self) -> None:
        """Stop without writing."""
        from neuron_tools.device import native

        native.abandon_recording()
        self._take_hooks_out()

    @property
    def error(self) -> str | None:
        """Why writing the log stopped."""
        from neuron_tools.device import native

        return native.recording_error()

    @property
    def record_count(self) -> int:
        """Records made."""
        from neuron_tools.device import native

        return native.record_count()

    def define_module(self, path: str, class_name: str) -> int:
        """Number of a module of the user's model; called once per module by the hooks."""
        from neuron_tools.device import native

        self._module_count += 1
        if self._recording is not None:
            definitions = self._recording.definitions
            definitions.write("module", id=self._module_count, path=path, **{"class": class_name})
            native.name_module(self._module_count, path)
        return self._module_count

    def _configure_time(self, recording: Recording) -> None:
        from neuron_tools.device import native

        options, core = recording.options, recording.core
        clock: Literal["measured", "fixed"] = "fixed" if options.host_clock == "fixed" else "measured"
        native.set_clock(clock, options.fixed_ns_per_dispatch)
        native.set_eager_fusion(options.eager_fusion)
        native.set_launch_overhead_ns(round(core.launch_overhead_ns))
        native.set_copy_model(core.host_link_bandwidth, round(core.host_transfer_latency_ns))
        limit_bytes = native.memory_limit()
        self._hooks.append(lambda: native.set_memory_limit(limit_bytes))
        # Without values a program that does not fit is measured too: what it would take is the answer.
        native.set_memory_limit(core.hbm_bytes if options.values == "computed" else 0)

    def _describe_device(self, recording: Recording) -> None:
        """Let `torch.neuron.get_device_properties` tell what is simulated."""
        from neuron_tools.device.api import DeviceProperties, configure_properties

        core = recording.core
        description = f"neuron: {core.chip} {core.name} (simulated)"
        memory, cores, target = core.hbm_bytes, core.logical_core_size, recording.options.target
        properties = DeviceProperties(description, memory, cores, core.generation, target=target)
        before = configure_properties(properties)
        self._hooks.append(lambda: configure_properties(before))

    def _count_for_driver(self, recording: Recording, profile: str | None) -> None:
        """Let the simulated driver's counters tell what the profile will."""
        torch_driver.begin_session(recording.options.target, profile, recording.options.lnc)
        usages = Usages()

        def define(executable: Executable) -> None:
            torch_driver.define(executable.number, partial(usages.of, executable))

        recording.store.on_executable.append(define)

    def _time_collectives(self, recording: Recording, define: Define | None) -> None:
        from neuron_tools.device.distributed import session

        timed = session.TimedSession(recording.core, recording.start_unix_ns, define, recording.options.ranks)
        self._hooks.append(session.install(timed))

    def _install_hooks(self, recording: Recording) -> None:
        from neuron_tools.device import native
        from neuron_tools.frontends import executables
        from neuron_tools.frontends.torch_hooks.installation import install

        names = TensorNames(recording.definitions.tensor)
        calls = ModuleCalls(recording.definitions.module_call)
        hooks = install(native, untraced(self.define_module), untraced(names.tell), untraced(calls.tell))
        self._hooks.append(hooks)
        untraced(recording.store.executable_for)
        self._hooks.append(executables.install(recording.store))

    def _sample_host(self, recording: Recording) -> None:
        from neuron_tools.capture.host_samples.sampler import HostSampler

        self._sampler = HostSampler(recording.directory)
        self._sampler.start()

    def _warn_of_graph_breaks(self) -> None:
        from neuron_tools.frontends.torch_compile.graph_breaks import graph_breaks

        if self._recording is not None:
            for broken in graph_breaks():
                self._recording.definitions.write("warning", message=broken.message, category=GRAPH_BREAK)

    def _take_hooks_out(self) -> None:
        while self._hooks:
            self._hooks.pop()()
