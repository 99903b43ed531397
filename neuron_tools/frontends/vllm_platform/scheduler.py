"""vLLM's schedulers, with requests (arrival, start, tokens, end) and their blocks as ranges in the profile.

Times are the device's only where the device is driven. So the engine records the requests where it drives the
device itself; else it tells the first worker, with each step, which requests have come.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from neuron_tools.frontends.serving.cache_use import Blocks, CacheUseRange
from neuron_tools.frontends.serving.requests import RequestRanges

_BEFORE_THEIR_TIME = (RequestStatus.FINISHED_ABORTED, RequestStatus.FINISHED_ERROR)


class RecordingScheduler(Scheduler):
    """For an engine that drives the device itself."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ranges, self._cache_use = RequestRanges(), CacheUseRange()

    def add_request(self, request: Any) -> None:
        """A request has arrived."""
        super().add_request(request)
        self._ranges.arrive(request.request_id)

    def schedule(self, *arguments: Any, **options: Any) -> Any:
        """Plan a step."""
        planned = super().schedule(*arguments, **options)
        self._ranges.take(planned.num_scheduled_tokens)
        self._cache_use.hold(blocks_of(self))
        return planned

    def _update_request_with_output(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = super()._update_request_with_output(request, *arguments, **options)
        self._ranges.give(request.request_id, len(answer[0]))
        return answer

    def _free_request(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = super()._free_request(request, *arguments, **options)
        end = self._ranges.abort if is_aborted(request) else self._ranges.finish
        end(request.request_id)
        self._cache_use.hold(blocks_of(self))
        return answer


class TellingScheduler(Scheduler):
    """For an engine whose workers drive the devices: a step carries what the profile has."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arrived: list[str] = []
        self._aborted: set[str] = set()

    def add_request(self, request: Any) -> None:
        """A request has arrived."""
        super().add_request(request)
        self._arrived.append(request.request_id)

    def schedule(self, *arguments: Any, **options: Any) -> Any:
        """Plan a step."""
        planned = super().schedule(*arguments, **options)
        planned.neuron_arrived, self._arrived = self._arrived, []
        planned.neuron_aborted, self._aborted = self._aborted, set()
        planned.neuron_blocks = blocks_of(self)
        return planned

    def _free_request(self, request: Any, *arguments: Any, **options: Any) -> Any:
        if is_aborted(request):
            self._aborted.add(request.request_id)
        return super()._free_request(request, *arguments, **options)


def is_aborted(request: Any) -> bool:
    """Whether a request has ended before its time.

    Where a stop string has come, vLLM aborts its request as if the client had gone: a request that has such
    strings, and a token, counts as stopped.
    """
    parameters = request.sampling_params
    may_be_stopped = parameters is not None and parameters.stop and request.num_output_tokens
    return request.status in _BEFORE_THEIR_TIME and not may_be_stopped


def blocks_of(scheduler: Scheduler) -> Blocks:
    """The blocks of a scheduler; the one that no request has is none."""
    pool = scheduler.kv_cache_manager.block_pool
    total = pool.num_gpu_blocks - 1
    return total - pool.get_num_free_blocks(), total
