"""The serving example, its own loop and transformers': each request's tokens are counted and timed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.serving import measure_serving
from tests.integration.distributed.jobs import capture

EXAMPLE = Path(__file__).parents[3] / "examples" / "serve_decoder.py"
REQUESTS, TOKENS = 3, 4
ABOVE_MODULES = """
SELECT count(*) AS calls FROM HostSpan AS request JOIN HostSpan AS call USING (process_idx)
WHERE request.name = 'request 0' AND call.kind = 'module'
    AND call.start_ts >= request.start_ts AND call.end_ts <= request.end_ts
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", [[], ["--transformers", "generate"], ["--transformers", "batch"]])
def test_requests_and_tokens_are_told(tmp_path, mode):
    script = [sys.executable, str(EXAMPLE), "--requests", str(REQUESTS), "--tokens", str(TOKENS), *mode]
    done = capture(script, tmp_path / "serve.nprof")
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"Requests     {REQUESTS} with {REQUESTS * TOKENS} tokens" in done.stderr
    with neuron_tools.open_profile(tmp_path / "serve.nprof") as profile:
        serving = measure_serving(profile)
        calls = profile.query(ABOVE_MODULES).to_pylist()[0]["calls"]
    assert serving is not None
    assert len(serving.requests) == REQUESTS
    assert all(request.first_token_ns > 0 for request in serving.requests)
    assert all((request.per_token_ns or 0) > 0 for request in serving.requests)
    assert calls > 0
