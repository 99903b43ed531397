"""A job of which one rank runs is timed as the same job of which all do."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import neuron_tools
from tests.integration.distributed.jobs import capture, torchrun

pytestmark = pytest.mark.slow

SHARDED = """
import os, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("neuron")
device = f"neuron:{os.environ['LOCAL_RANK']}"
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(2))).to(device)
for part in (*model, model):
    fully_shard(part)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(64, 256, device=device)).square().mean().backward()
    optimizer.step()
torch.neuron.synchronize()
dist.destroy_process_group()
"""
SAVED = SHARDED.replace(
    "torch.neuron.synchronize()",
    """
from torch.distributed import checkpoint
checkpoint.save(model.state_dict(), checkpoint_id=os.path.dirname(__file__) + "/saved")
print("went on")
torch.neuron.synchronize()
""",
)
_SAVE_LATER = """async_save(
    model.state_dict(), process_group=dist.new_group(backend="gloo"),
    async_checkpointer_type=checkpoint.state_dict_saver.AsyncCheckpointerType.PROCESS,
"""
SAVED_BY_A_PROCESS = 'if __name__ == "__main__":' + textwrap.indent(
    SAVED.replace("save(model.state_dict(),", _SAVE_LATER).replace('/saved")', '/saved").result()'), "    "
)
STAGES = """
import os, torch, torch.distributed as dist
dist.init_process_group("neuron")
rank, size = dist.get_rank(), dist.get_world_size()
mesh = dist.init_device_mesh("neuron", (2, size // 2), mesh_dim_names=("pp", "dp"))
x = torch.ones(1 << 16, device=f"neuron:{os.environ['LOCAL_RANK']}")
if mesh.get_local_rank("pp") == 0:
    dist.send(torch.relu(x), rank + size // 2, group=mesh.get_group("pp"))
else:
    dist.recv(x, rank - size // 2, group=mesh.get_group("pp"))
dist.all_reduce(x, group=mesh.get_group("dp"))
torch.neuron.synchronize()
dist.destroy_process_group()
"""
LARGE = """
import os, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("neuron")
mesh = dist.init_device_mesh("neuron", (256, 4), mesh_dim_names=("dp", "tp"))
with torch.device("meta"):
    layer = torch.nn.Linear(4096, 1000, bias=False, dtype=torch.bfloat16)
fully_shard(layer, mesh=mesh["dp"])
layer.to_empty(device=f"neuron:{os.environ['LOCAL_RANK']}")
print("shard", tuple(layer.weight.to_local().shape), torch.neuron.memory_allocated())
layer(torch.empty(8, 4096, device=layer.weight.device, dtype=torch.bfloat16))
torch.neuron.synchronize()
dist.destroy_process_group()
"""
MASKED = """
import os, torch, torch.distributed as dist
dist.init_process_group("neuron")
device = f"neuron:{os.environ['LOCAL_RANK']}"
hidden = torch.randn(6, 32, device=device, requires_grad=True)
labels = torch.tensor([1, -100, 3, -100, 5, 6], device=device)
kept = hidden[labels != -100]
gathered = torch.empty(64 * len(kept), 32, device=device)
dist.all_gather_into_tensor(gathered, kept.detach())
speech = torch.randn(40, 2, 8, device=device, requires_grad=True)
lengths = torch.tensor([40, 30], device=device), torch.tensor([7, 9], device=device)
targets = torch.ones(2, 9, dtype=torch.long, device=device)
loss = torch.nn.functional.ctc_loss(speech.log_softmax(2), targets, *lengths)
(loss + kept.sum() + hidden[labels[[0, 2]]].sum()).backward()
print("kept", tuple(kept.shape), tuple(hidden.grad.shape), tuple(speech.grad.shape))
torch.neuron.synchronize()
dist.destroy_process_group()
"""
FACTS = """
SELECT (SELECT max(total_bytes) FROM SystemProfileHbmUsage) AS peak_bytes,
    (SELECT max(execution_end_ts) FROM ExecutionInfo) AS end_ns,
    (SELECT list((operation, input_size, output_size, replica_group, start_ts, end_ts)
        ORDER BY start_ts, op_id)
     FROM CcOp JOIN ProcessInfo USING (process_idx) WHERE rank = 0) AS collectives
"""


@pytest.fixture
def script(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "job.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def _facts(profile: Path) -> dict[str, object]:
    with neuron_tools.open_profile(profile) as opened:
        (row,) = opened.query(FACTS).to_pylist()
    return row


def test_one_rank_predicts_what_four_do(script, tmp_path):
    path = script(SHARDED)
    four = capture(torchrun(path, 4), tmp_path / "four.nprof", "--target", "trn2.48xlarge")
    chosen = ("--target", "trn2.48xlarge", "--world-size", "4", "--run-ranks", "0", "--values", "skip")
    one = capture(["python", str(path)], tmp_path / "one.nprof", *chosen)
    assert four.returncode == one.returncode == 0, four.stderr + one.stderr
    assert _facts(tmp_path / "one.nprof") == _facts(tmp_path / "four.nprof")


@pytest.mark.parametrize("text", [SAVED, SAVED_BY_A_PROCESS], ids=["at_once", "by_a_process"])
def test_a_checkpoint_that_would_lack_shards_is_left_out_with_a_sentence(script, text, tmp_path):
    chosen = ("--target", "trn2.48xlarge", "--world-size", "4", "--values", "skip")
    ended = capture(["python", str(script(text))], tmp_path / "saved.nprof", *chosen)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("No checkpoint is written: 3 of the ranks") == 1
    assert "went on" in ended.stdout
    assert not (tmp_path / "saved").exists()
    with neuron_tools.open_profile(tmp_path / "saved.nprof") as profile:
        assert profile.complete


def test_the_stages_of_a_pipeline_are_found_and_run(script, tmp_path):
    chosen = ("--target", "trn2.48xlarge", "--world-size", "512", "--values", "skip")
    ended = capture(["python", str(script(STAGES))], tmp_path / "stages.nprof", *chosen)
    assert ended.returncode == 0, ended.stderr
    assert "of 512 ranks, these run: 0, 256" in ended.stderr
    with neuron_tools.open_profile(tmp_path / "stages.nprof") as profile:
        rows = profile.query(
            "SELECT rank, operation, len(string_split(replica_group, ',')) AS ranks FROM CcOp "
            "JOIN ProcessInfo USING (process_idx) WHERE operation <> 'Barrier' ORDER BY rank, start_ts"
        ).to_pylist()
    told = [(row["rank"], row["operation"], row["ranks"]) for row in rows]
    assert told == [(0, "Send", 2), (0, "AllReduce", 256), (256, "Receive", 2), (256, "AllReduce", 256)]


def test_shards_and_bytes_are_those_of_the_whole_job(script, tmp_path):
    """1,000 rows for 256 ranks: 4 rows each, padded to 1,024 where they are gathered."""
    chosen = ("--target", "trn2.48xlarge", "--world-size", "1024", "--run-ranks", "3", "--values", "skip")
    ended = capture(["python", str(script(LARGE))], tmp_path / "large.nprof", *chosen)
    assert ended.returncode == 0, ended.stderr
    assert f"shard (4, 4096) {4 * 4096 * 2}" in ended.stdout
    with neuron_tools.open_profile(tmp_path / "large.nprof") as profile:
        query = "SELECT input_size, output_size, replica_group FROM CcOp WHERE operation = 'AllGather'"
        (row,) = profile.query(query).to_pylist()
    assert (row["input_size"], row["output_size"]) == (4 * 4096 * 2, 1024 * 4096 * 2)
    assert row["replica_group"].strip("[]").replace(" ", "").split(",") == [
        str(3 + 4 * n) for n in range(256)
    ]


def test_what_a_mask_of_integers_keeps_is_known_without_values(script, tmp_path):
    chosen = ("--target", "trn2.48xlarge", "--world-size", "64", "--run-ranks", "1", "--values", "skip")
    ended = capture(["python", str(script(MASKED))], tmp_path / "masked.nprof", *chosen)
    assert ended.returncode == 0, ended.stderr
    assert "kept (4, 32) (6, 32) (40, 2, 8)" in ended.stdout
    with neuron_tools.open_profile(tmp_path / "masked.nprof") as profile:
        query = "SELECT input_size, output_size FROM CcOp WHERE operation = 'AllGather'"
        (row,) = profile.query(query).to_pylist()
    assert (row["input_size"], row["output_size"]) == (4 * 32 * 4, 64 * 4 * 32 * 4)
