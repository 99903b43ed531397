"""Tools that run kernels of files in folders that were named: measure some, or search one's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neuron_profile.agents.answer import Json, as_text
from neuron_profile.tune.evaluate import evaluate
from neuron_profile.tune.measurement import Candidate, Measurement
from neuron_profile.tune.patch import as_patch, patched_text
from neuron_profile.tune.search import Settings, search
from neuron_profile.tune.space import read_space
from neuron_tools.errors import UsageError

MOST_CANDIDATES = 500
TIMEOUT_S = 30.0


class KernelTools:
    """Measures and tunes NKI kernels; their code runs in processes of its own, with this user's rights.

    Args:
        folders: Where kernels may stand; a path elsewhere is refused.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder.resolve() for folder in folders]

    def evaluate(self, kernels: list[str], inputs: str = "inputs", expected: str = "") -> str:
        """Simulate NKI kernels: time, SBUF, counters, and how far their values are off.

        kernels: FILE.py:FUNCTION each. inputs: function of the file that makes the arguments. expected:
        function of the file that computes the right values from them; "" = values are not compared.
        """
        named = [self._kernel(kernel) for kernel in kernels[:MOST_CANDIDATES]]
        found = evaluate(named, inputs, expected=expected or None, values=bool(expected), timeout_s=TIMEOUT_S)
        return as_text({"rows": [_row(each) for each in found]}, ["tune(kernel)"])

    def tune(self, kernel: str, space: str = "", candidates: int = 100) -> str:
        """Search a kernel's parameters for the least simulated time; nothing is written.

        kernel: FILE.py:FUNCTION. space: TOML file of values to try; "" = parameters annotated with Literal.
        """
        named = self._kernel(kernel)
        chosen = read_space(self._allowed(Path(space)) if space else None, named)
        outcome = search(
            named, chosen, Settings(min(max(candidates, 1), MOST_CANDIDATES), timeout_s=TIMEOUT_S)
        )
        answer = {
            "as_it_stands": _row(outcome.baseline),
            "best": _row(outcome.best),
            "front": [_row(each) for each in outcome.front],
            "tried": len(outcome.tried),
            "diff": as_patch(named.path, patched_text(outcome.best.candidate)).splitlines(),
        }
        return as_text(answer, ["apply the diff, capture again, then diff(base, new)"])

    def _kernel(self, text: str) -> Candidate:
        self._allowed(Path(text.rpartition(":")[0]))
        return Candidate.named(text)

    def _allowed(self, path: Path) -> Path:
        """A file below one of the folders.

        Raises:
            UsageError: It stands elsewhere.
        """
        found = path.resolve()
        if not any(found.is_relative_to(folder) for folder in self._folders):
            listed = ", ".join(map(str, self._folders))
            raise UsageError(f"Kernels run only from {listed}: name a file there.")
        return found


def _row(found: Measurement) -> Json:
    return {
        "kernel": f"{found.candidate.path.name}:{found.candidate.function}",
        "parameters": dict(found.candidate.parameters),
        "time_ns": found.time_ns,
        "sbuf_bytes": found.sbuf_bytes,
        "counters": dict(found.counters),
        "refused": found.error,
        "difference": found.difference,
    }
