"""An agent measures and tunes kernels where the user allows it, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp")
pytest.importorskip("optuna")

EXAMPLES = Path(__file__).parents[3] / "examples/nki"


@pytest.mark.slow
def test_kernels_of_a_named_folder_are_measured_and_tuned(tmp_path: Path) -> None:
    async def run() -> tuple[str, dict, str, dict]:
        command = ["-m", "neuron_profile.cli", "mcp", str(tmp_path), "--run-kernels", str(EXAMPLES)]
        async with mcp.Client(mcp.StdioServerParameters(command=sys.executable, args=command)) as client:

            async def ask(tool: str, **arguments: object) -> str:
                result = await client.call_tool(tool, arguments)
                (content,) = result.content
                return content.text

            names = " ".join(tool.name for tool in (await client.list_tools()).tools)
            kernel = str(EXAMPLES / "softmax.py")
            told = await ask("evaluate", kernels=[f"{kernel}:softmax_fused", f"{kernel}:softmax_tunable"])
            refused = await ask("evaluate", kernels=[f"{tmp_path}/kernel.py:run"])
            tuned = await ask("tune", kernel=f"{kernel}:softmax_tunable", candidates=6)
            return names, json.loads(told), refused, json.loads(tuned)

    names, told, refused, tuned = asyncio.run(run())
    assert "evaluate" in names
    fused, tunable = (row["time_ns"] for row in told["rows"])
    assert 0 < fused < tunable
    assert "Kernels run only from" in refused
    assert tuned["best"]["time_ns"] <= tuned["as_it_stands"]["time_ns"]
    assert tuned["tried"] <= 6
