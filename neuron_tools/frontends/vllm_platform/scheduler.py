"""vLLM's scheduler, with each request's arrival, start, tokens and end as ranges in the profile."""

from __future__ import annotations

from typing import Any

from torch.profiler import record_function
from vllm.v1.core.sched.scheduler import Scheduler


class NeuronScheduler(Scheduler):
    """Records `request ID` from arrival to end, `queue ID` until a step takes it, `token ID` each token."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._open: dict[str, dict[str, record_function]] = {}

    def add_request(self, request: Any) -> None:
        """A request has arrived."""
        super().add_request(request)
        for kind in ("request", "queue"):
            self._begin(kind, request.request_id)

    def schedule(self, *arguments: Any, **options: Any) -> Any:
        """Plan a step: what is scheduled waits no longer, and works on its next token."""
        planned = super().schedule(*arguments, **options)
        for request_id in planned.num_scheduled_tokens:
            self._end("queue", request_id)
            self._begin("token", request_id)
        return planned

    def _update_request_with_output(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = super()._update_request_with_output(request, *arguments, **options)
        for _ in answer[0]:
            self._begin("token", request.request_id)  # several tokens of one step end together
            self._end("token", request.request_id)
        return answer

    def _free_request(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = super()._free_request(request, *arguments, **options)
        for kind in ("queue", "request"):
            self._end(kind, request.request_id)
        self._open.pop(request.request_id, None)  # what is left of a stopped request is no token
        return answer

    def _begin(self, kind: str, request_id: str) -> None:
        ranges = self._open.setdefault(request_id, {})
        if kind not in ranges:
            ranges[kind] = record_function(f"{kind} {request_id}")
            ranges[kind].__enter__()

    def _end(self, kind: str, request_id: str) -> None:
        opened = self._open.get(request_id, {}).pop(kind, None)
        if opened is not None:
            opened.__exit__(None, None, None)
