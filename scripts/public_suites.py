"""Public repositories of NKI kernels, and what of each runs: tests, programs, kernels with references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Suite:
    """What of a checkout is run.

    Attributes:
        folders: Of its tests and programs, below the checkout.
        tests: Patterns of the names of files that hold test functions.
        programs: Patterns of the names, or paths, of files that are run as programs, with their own checks;
            those that only define kernels are imported.
        pairs: Pattern of the paths of kernels, and AccelOpt's checkout, whose benchmark has their references
            in NumPy.
        path: Folders that its code imports from, below the checkout.
        options: Further options of pytest.
        variables: Environment variables that its tests read.
        target: Generation that its cases are for; "" leaves it to the command line.
    """

    folders: Sequence[str]
    tests: Sequence[str] = ("test_*.py",)
    programs: Sequence[str] = ()
    pairs: tuple[str, str] | None = None
    path: Sequence[str] = ()
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    target: str = ""


_SEED = "0"  # of nki-library's own choice of parameters
_UNROUNDED = {"NKI_PRECISE_FP": "0"}
"""The default of release 2.29's simulator, whose tolerances its tests have."""
_TUTORIALS = ("*_torch.py", "*_jax.py")
_OWN_REFERENCE = ("*_nki_kernel.py", "*_nki_kernels.py")
"""Kernels that compare themselves with NumPy when they are run."""

SUITES = {
    "nki-library": Suite(
        ("test/integration",), path=("src", "."), options=("--test-mode=simulation",),
        variables={**_UNROUNDED, "NEURON_PYTHONHASHSEED": _SEED, "PYTHONHASHSEED": _SEED,
                   "NKILIB_SIMULATION_RUN_ALL": "1", "NKILIB_FORCE_BUNDLED_LIBRARY": ""},
    ),
    "aws-neuron-sdk": Suite(
        ("nki/test", "nki/examples"),
        programs=(*_TUTORIALS, *_OWN_REFERENCE, "layout-*.py", "index-*.py", "getting_*.py", "nki_sim*.py"),
    ),
    "aws-neuron-sdk-mxfp": Suite(("nki/deep-dives/src",), programs=("mx_toplevel.py",), target="trn3"),
    "nki-samples": Suite(
        ("test/unit", "src/nki_samples/tutorials", "contributed"),
        tests=("test_[!ka]*.py", "test_kernel.py", "test_a[dl]*.py"),
        programs=(*_TUTORIALS, *_OWN_REFERENCE, "test_attention.py", "contributed/*.py"),
        path=("src",),
    ),
    "AccelOpt": Suite(
        ("NKIBench/kernels",), tests=(), pairs=("NKIBench/kernels/*.py", "."), target="trn1"
    ),
    "kda-for-trainium": Suite(
        ("workspaces",), tests=(), pairs=("workspaces/*/runs/*.py", "../AccelOpt"), target="trn2"
    ),
    "nki-autotune": Suite(
        ("test",), path=("nkigym/src", "autotune/src", "."), variables={"NKI_CHECKS": "fast"}, target="trn2"
    ),
}  # fmt: skip
"""By name; that of a checkout, or of one with a suffix."""
