"""What a sampled thread was busy with, from its stack."""

from __future__ import annotations

import re
from functools import lru_cache

from neuron_tools.capture.host_samples.called import called
from neuron_tools.capture.host_samples.reading import SampledStack
from neuron_tools.frozen import frozen

PYTHON = "python"
BACKWARD = "_engine_run_backward"


@frozen
class Activity:
    """What a thread was doing.

    Attributes:
        kind: One of the schema's `HostSampleKind`.
        detail: More closely, in words; "" where the kind says it all.
    """

    kind: str
    detail: str = ""


@frozen
class _Files:
    """Frames that tell a kind: by their file, and by their function where that matters."""

    files: re.Pattern[str]
    activity: Activity
    functions: re.Pattern[str] | None = None

    def matches(self, file: str, function: str) -> bool:
        if not self.files.search(file):
            return False
        return self.functions is None or self.functions.search(function) is not None


def _files(pattern: str, kind: str, detail: str = "", functions: str = "") -> _Files:
    chosen = re.compile(functions) if functions else None
    return _Files(re.compile(pattern), Activity(kind, detail), chosen)


_LOADING = (
    _files(r"/torch/utils/data/_utils/collate\.py$", "data_loading", "putting a batch together"),
    _files(
        r"/torch/utils/data/dataloader\.py$",
        "data_loading",
        "waiting for its workers",
        r"_try_get_data|_get_data|_shutdown",
    ),
    _files(
        r"/torch/utils/data/dataloader\.py$",
        "data_loading",
        "starting its workers",
        r"_MultiProcessingDataLoaderIter\.__init__|_get_iterator",
    ),
    _files(r"/torch/utils/data/_utils/(worker|fetch|pin_memory)\.py$", "data_loading"),
    _files(r"/torch/utils/data/dataloader\.py$", "data_loading", "", r"_next_data|__next__|__iter__"),
)
# What calls a compiled function is on every stack below it, and neither traces nor compiles.
_TRACING = (
    _files(
        r"/neuron_tools/(compiler|backend|simulator|nki|frontends/torch_lowering)/"
        r"|/neuron_tools/frontends/torch_compile/(?!compiled_graph)",
        "compilation",
    ),
    _files(r"/torch/_inductor/", "compilation"),
    _files(
        r"/torch/_dynamo/(?!eval_frame|external_utils|callback|decorators|utils\.py)",
        "tracing",
        "torch.compile traces a function",
    ),
    _files(
        r"/torch/_functorch/_aot_autograd/(?!runtime_wrappers|subclass_codegen|utils)",
        "tracing",
        "torch.compile traces a function",
    ),
    _files(r"/torch/(export|fx/experimental)/|/torch/fx/(_symbolic_trace|proxy|interpreter)\.py$", "tracing"),
    _files(
        r"/jax/_src/(interpreters/(partial_eval|mlir)|pjit|compiler)\.py$",
        "tracing",
        "jax.jit traces a function",
    ),
    _files(r"^<frozen importlib\._bootstrap", "import"),
)
_LIBRARIES = (
    _files(r"/torch/(serialization|_weights_only_unpickler)\.py$", "input_output", "a checkpoint"),
    _files(r"/torch/distributed/checkpoint/|/safetensors/", "input_output", "a checkpoint"),
    _files(r"/(pickle|cloudpickle/\w+|dill/\w+|multiprocessing/reduction)\.py$", "pickling"),
    _files(r"/logging/(__init__|handlers)\.py$", "input_output", "logging"),
    _files(r"/(tqdm|rich)/\w+\.py$", "input_output", "showing progress"),
    _files(r"/(subprocess|socket|ssl|http/client)\.py$", "input_output"),
    _files(r"/(shutil|tempfile|gzip|bz2|lzma|zipfile|tarfile)\.py$", "input_output", "files"),
    _files(r"/torch/nn/utils/clip_grad\.py$", "optimizer", "clipping gradients"),
    _files(r"/torch/optim/", "optimizer"),
    _files(r"/(threading|queue|selectors|concurrent/futures/\w+)\.py$", "lock"),
    _files(r"/multiprocessing/(synchronize|queues|connection)\.py$", "lock"),
)
_RULES = {"loading": _LOADING, "tracing": _TRACING, "libraries": _LIBRARIES}


def _calls(pattern: str, kind: str, detail: str = "") -> tuple[re.Pattern[str], Activity]:
    return re.compile(pattern), Activity(kind, detail)


_CALLS = (
    _calls(r"^(torch\.(save|load)|\w*\.?save_checkpoint)$", "input_output", "a checkpoint"),
    _calls(r"^(c?_?pickle|dill|cloudpickle|marshal|joblib)\.(dumps?|loads?)$", "pickling"),
    _calls(r"^_?ForkingPickler\.\w+$", "pickling"),
    _calls(r"^(print|pprint|sys\.std(out|err)\.\w+)$", "input_output", "printing"),
    _calls(
        r"^(open|os\.(open|read|write|fsync|replace|stat|listdir|scandir|makedirs))$", "input_output", "files"
    ),
    _calls(r"^(np|numpy)\.(save\w*|load\w*|fromfile|memmap)$", "input_output", "files"),
    _calls(r"\.(read|write)(line|lines|into|_text|_bytes)?$|\.(flush|tofile)$", "input_output", "files"),
    _calls(r"\.(recv|recv_into|send|sendall)$", "input_output", "a network"),
    _calls(r"(^|\.)sleep$", "sleep"),
    _calls(r"\.(acquire|wait|wait_for)$", "lock"),
    _calls(r"\.(item|tolist|cpu|numpy|to)$", "copy"),
    _calls(r"^gc\.collect$", "garbage_collection"),
)
_ENTERING = ("BEFORE_WITH", "SETUP_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL")
# Only there Python looks whether another thread asked for its lock. Elsewhere a thread without the lock gave
# it up by itself, say where storing a value frees the tensor that was there.
_GIVING_WAY = ("RESUME", "JUMP", "POP_JUMP")


def activity_of(stack: SampledStack, blocked: bool) -> Activity:
    """What a thread was doing.

    Args:
        blocked: It waits for something without Python's lock, or for that lock.
    """
    for rules in ("loading", "tracing"):
        found = _of_frames(stack, rules)
        if found is not None:
            return _loading_more_closely(stack, found)
    function = called(stack)
    of_call = next((activity for pattern, activity in _CALLS if pattern.search(function)), None)
    found = _of_frames(stack, "libraries")
    if found is not None and not (found.kind in ("lock", "optimizer") and of_call is not None):
        return found
    if of_call is not None:
        return of_call
    return (_of_waiting(stack) if blocked else None) or Activity(PYTHON)


def _of_frames(stack: SampledStack, rules: str) -> Activity | None:
    """That of the innermost frame which tells one."""
    found = (_of_frame(rules, frame.file, frame.function) for frame in stack.frames)
    return next((activity for activity in found if activity is not None), None)


@lru_cache(maxsize=1 << 14)
def _of_frame(rules: str, file: str, function: str) -> Activity | None:
    """What the first of the rules for a frame tells."""
    return next((rule.activity for rule in _RULES[rules] if rule.matches(file, function)), None)


def _loading_more_closely(stack: SampledStack, found: Activity) -> Activity:
    """A queue between worker and main process pickles; only what is called says whether it waits."""
    if found.kind != "data_loading" or not stack.frames[0].file.endswith("/multiprocessing/queues.py"):
        return found
    return Activity("pickling", "batches between processes") if "loads" in called(stack) else found


def _of_waiting(stack: SampledStack) -> Activity | None:
    if stack.operation in _ENTERING:
        return Activity("lock")
    if stack.operation.startswith(_GIVING_WAY):
        return Activity("lock", "Python's global lock")
    return None
