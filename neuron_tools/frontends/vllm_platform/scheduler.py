"""vLLM's schedulers, with each request's arrival, start, tokens and end as ranges in the profile.

Times are the device's only where the device is driven. So the engine records the requests where it drives the
device itself; else it tells the first worker, with each step, which requests have come.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler

from neuron_tools.frontends.vllm_platform.requests import RequestRanges


class RecordingScheduler(Scheduler):
    """For an engine that drives the device itself."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ranges = RequestRanges()

    def add_request(self, request: Any) -> None:
        """A request has arrived."""
        super().add_request(request)
        self._ranges.arrive(request.request_id)

    def schedule(self, *arguments: Any, **options: Any) -> Any:
        """Plan a step."""
        planned = super().schedule(*arguments, **options)
        self._ranges.take(planned.num_scheduled_tokens)
        return planned

    def _update_request_with_output(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = super()._update_request_with_output(request, *arguments, **options)
        self._ranges.give(request.request_id, len(answer[0]))
        return answer

    def _free_request(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = super()._free_request(request, *arguments, **options)
        self._ranges.finish(request.request_id)
        return answer


class TellingScheduler(Scheduler):
    """For an engine whose workers drive the devices: a step carries the requests that came since the last."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arrived: list[str] = []

    def add_request(self, request: Any) -> None:
        """A request has arrived."""
        super().add_request(request)
        self._arrived.append(request.request_id)

    def schedule(self, *arguments: Any, **options: Any) -> Any:
        """Plan a step."""
        planned = super().schedule(*arguments, **options)
        planned.neuron_arrived, self._arrived = self._arrived, []
        return planned
