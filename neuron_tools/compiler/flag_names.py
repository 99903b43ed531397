"""Which options AWS's compilers take: a misspelt one is refused as there, not passed over."""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches

from neuron_tools.errors import UsageError

DOCUMENTED = (
    "--auto-cast", "--auto-cast-type", "--disable-mixed-precision-accumulation", "--distribution-strategy",
    "--enable-fast-context-switch", "--enable-fast-loading-neuron-binaries",
    "--enable-mixed-precision-accumulation", "--enable-saturate-infinity", "--framework", "--help",
    "--implicit-integer-downcast", "--lnc", "--logfile", "--logical-nc-config", "--model-type",
    "--native-int64", "--optlevel", "--output", "--target", "--verbose",
)  # fmt: skip
"""Of neuronx-cc: AWS's "Neuron Compiler CLI Reference Guide"."""

INFERENTIA_1 = (
    "--dynamic-batch-size", "--extract-weights", "--fast-math", "--fp32-cast", "--io-config",
    "--neuroncore-pipeline-cores", "--num-neuroncores", "--static-weights",
)  # fmt: skip
"""Of neuron-cc, and of AWS's TensorFlow for that chip, which hands its own on."""

WRAPPER = (
    "--cache-dir", "--compile-workdir", "--log-level", "--no-cache", "--retry-failed-compilation", "--workdir"
)  # fmt: skip
"""Of what starts the compiler for a framework."""

UNDOCUMENTED = (
    "--cc-pipeline-tiling-factor", "--disable-dge", "--enable-ccop-compute-overlap",
    "--enable-internal-neff-wrapper", "--enable-output-completion-notifications", "--enable-verifier",
    "--hbm-scratchpad-page-size", "--modular-flow-mac-threshold", "--pipeline", "--temp-dir",
    "--tensorizer-options", "--vectorize-strided-dma", "--verify-hlo",
)  # fmt: skip
"""Of neuronx-cc, as AWS's and Hugging Face's public libraries give them."""

KNOWN = frozenset((*DOCUMENTED, *INFERENTIA_1, *WRAPPER, *UNDOCUMENTED))
_OWN = re.compile(r"--(internal|experimental|enable-experimental)-|-[a-zA-Z]\d*$")
"""AWS's own switches, of which there are many, and short options."""
_ALIKE = 0.8
"""Share of letters in place from which a name is a misspelling of another."""


def check_name(name: str) -> None:
    """See to it that nobody takes an option for one that has an effect where it has none.

    Args:
        name: With hyphens, e.g. "--auto-cast".

    Raises:
        UsageError: It is a misspelling of an option.

    Warns:
        RuntimeWarning: No option of this name is known; AWS's compiler may have it, undocumented.
    """
    if name in KNOWN or _OWN.match(name):
        return
    alike = get_close_matches(name, sorted(KNOWN), n=1, cutoff=_ALIKE)
    if alike:
        raise UsageError(f"The compiler has no option {name}: did you mean {alike[0]}?")
    warnings.warn(
        f"No compiler option {name} is known, so it changes nothing here; AWS's compiler refuses one that it "
        "does not have.",
        RuntimeWarning,
        stacklevel=3,
    )
