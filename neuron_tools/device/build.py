"""Finds or builds the C++ extensions of the `neuron` device, one per PyTorch, Python and source version.

A wheel carries libraries that are built ahead (`SHIPPED_FOLDER`). For any other PyTorch or Python they are
built from source: `python -m neuron_tools.device.build` is the explicit step; the first `import torch` does
it too. What is built stands in a cache folder, so that an installed package needs no rights to its own
folder. Many processes may ask at once: one builds under a file lock, the others wait and load.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import itertools
import os
import shutil
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from neuron_tools.device.errors import CacheFolderError, DeviceBuildError, NoCompilerError
from neuron_tools.frozen import frozen

MODULE_NAME = "_neuron_device"
SOURCE_FOLDER = Path(__file__).parent / "csrc"
DISTRIBUTED_MODULE = "_neuron_distributed"
DISTRIBUTED_FOLDER = Path(__file__).parent / "distributed" / "csrc"
SHIPPED_FOLDER = Path(__file__).parent / "built"
MAX_UNITS = 2
"""Most of a unit's time goes into PyTorch's headers, so that more of them take more time in all."""
_COMPILE_FLAGS = (
    "-std=c++20",
    "-O2",
    "-DNDEBUG",  # as PyTorch is built: its classes have parts that are kept up to date otherwise only
    "-fPIC",
    "-w",
    "-fvisibility=hidden",
    "-DFMT_HEADER_ONLY=1",
    "-DUSE_KINETO",
)
_LIBRARIES = ("torch", "torch_cpu", "c10", "torch_python")


@frozen
class Extension:
    """A library that is built from one folder of sources.

    Attributes:
        name: Of the Python module.
        sources: Folder of its `.cpp` and `.h` files.
        folder: Where its builds stand below the cache folder.
        what: What a message calls it.
    """

    name: str
    sources: Path
    folder: str
    what: str

    @property
    def file_name(self) -> str:
        """The file name of the library."""
        return f"{self.name}.so"


def device_extension() -> Extension:
    """The device's core: operators, memory, time, recording."""
    return Extension(MODULE_NAME, SOURCE_FOLDER, "device", "the neuron device")


def distributed_extension() -> Extension:
    """The back end of torch.distributed, which only distributed programs need."""
    return Extension(DISTRIBUTED_MODULE, DISTRIBUTED_FOLDER, "distributed", "the neuron process group")


def cache_folder() -> Path:
    """The folder of all builds: `$NEURON_TOOLS_CACHE`, else `neuron-tools` in the user's cache folder."""
    chosen = os.environ.get("NEURON_TOOLS_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "neuron-tools"


def build_key(extension: Extension | None = None) -> str:
    """What a build depends on: PyTorch's version and C++ ABI, Python's tag, the machine and the sources."""
    import torch

    digest = hashlib.sha256(" ".join(_COMPILE_FLAGS).encode())
    for source in sorted((extension or device_extension()).sources.iterdir()):
        if source.suffix in {".cpp", ".h"}:
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    # A version's CPU and CUDA wheels have one C++ interface ("2.13.0+cpu", "2.13.0").
    version = torch.__version__.partition("+")[0]
    python = sys.implementation.cache_tag
    return f"torch{version}-abi{abi}-{python}-{os.uname().machine}-{digest.hexdigest()[:16]}"


def library_path(extension: Extension | None = None) -> Path:
    """Where the library for this process stands, or will stand; the device's if None is named."""
    chosen = extension or device_extension()
    shipped = shipped_path(chosen)
    return shipped if shipped.exists() else built_path(chosen)


def shipped_path(extension: Extension) -> Path:
    """Where a wheel has the library for this process, if it has it."""
    return SHIPPED_FOLDER / build_key(extension) / extension.file_name


def built_path(extension: Extension) -> Path:
    """Where the library for this process stands once it is built from source."""
    return cache_folder() / extension.folder / build_key(extension) / extension.file_name


def is_there(torch_version: str) -> bool:
    """Whether some build of the device for a version of PyTorch is there; imports nothing, so never sure."""
    release = f"torch{torch_version.partition('+')[0]}-*-{sys.implementation.cache_tag}-*"
    folders = (SHIPPED_FOLDER, cache_folder() / device_extension().folder)
    return any(any(folder.glob(f"{release}/{library_name()}")) for folder in folders)


def build(extension: Extension | None = None) -> Path:
    """Builds a library (the device's if None) unless it is there, and returns its path.

    Raises:
        NoCompilerError: There is no C++ compiler.
        CacheFolderError: The cache folder cannot be written.
        DeviceBuildError: The compiler failed.
    """
    chosen = extension or device_extension()
    library = library_path(chosen)
    return library if library.exists() else _build_from_source(chosen)


def _build_from_source(chosen: Extension) -> Path:
    library = built_path(chosen)
    if library.exists():
        return library
    with _locked(library.parent):
        if not library.exists():
            _compile(chosen, library)
    return library


_loading = threading.RLock()
"""A thread must not find a module that another one is still loading."""


def load(extension: Extension | None = None) -> ModuleType:
    """Builds a library (the device's if None) if needed, loads it and returns the extension module."""
    chosen = extension or device_extension()
    with _loading:
        return sys.modules.get(chosen.name) or _load_built(chosen)


def _load_built(extension: Extension) -> ModuleType:
    library = build(extension)
    try:
        return _load_library(extension, library)
    except DeviceBuildError:
        if library != shipped_path(extension):
            raise
    # Built ahead against another system library: this machine builds its own.
    return _load_library(extension, _build_from_source(extension))


def _load_library(extension: Extension, library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(extension.name, str(library))
    spec = importlib.util.spec_from_file_location(extension.name, library, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        message = f"The built library {library} does not load ({error}); delete that file to build it anew."
        raise DeviceBuildError(message) from error
    sys.modules[extension.name] = module
    return module


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise CacheFolderError(
            f"The neuron device cannot be kept in {folder} ({error.strerror}); "
            "set NEURON_TOOLS_CACHE to a folder that you can write."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find_compiler() -> str:
    wanted = os.environ.get("CXX")
    compiler = shutil.which(wanted) if wanted else shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        what = f"The C++ compiler {wanted} (from CXX) was not found" if wanted else "There is no C++ compiler"
        raise NoCompilerError(
            f"{what}, and the neuron device is built once on first use: install g++ (apt install g++)."
        )
    return compiler


def _include_flags() -> list[str]:
    import torch

    include = Path(torch.__file__).parent / "include"
    folders = [
        include,
        include / "torch/csrc/api/include",
        include / "kineto",
        sysconfig.get_paths()["include"],
    ]
    return [flag for folder in folders for flag in ("-isystem", str(folder))]


def _run_compiler(command: list[str], what: str) -> None:
    import subprocess

    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        message = next(
            (line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip()[-300:]
        )
        raise DeviceBuildError(f"Building the neuron device failed at {what}: {message}")


def unit_texts(sources: Path, units: int) -> list[str]:
    """The sources of a folder as that many files, each including its share: headers are read once."""
    files = sorted(sources.glob("*.cpp"))
    sizes = list(itertools.accumulate(file.stat().st_size for file in files))
    shares: list[list[str]] = [[] for _ in range(units)]
    for file, end in zip(files, sizes):
        shares[(end - 1) * units // sizes[-1]].append(f'#include "{file}"\n')
    return ["".join(share) for share in shares if share]


def _compile_unit(compiler: str, number: int, text: str, folder: Path, flags: list[str]) -> Path:
    source = folder / f"unit_{number}.cpp"
    source.write_text(text)
    target = source.with_suffix(".o")
    _run_compiler([compiler, *flags, "-c", str(source), "-o", str(target)], source.name)
    return target


def _compile(extension: Extension, library: Path) -> None:
    import tempfile

    import torch

    compiler = _find_compiler()
    started = time.monotonic()
    _say(
        f"building {extension.what} from source, once, as this installation has none for torch "
        f"{torch.__version__} and Python {sys.version_info[0]}.{sys.version_info[1]}; it takes up to a minute"
    )
    try:
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            built = compile_and_link(compiler, extension, Path(folder))
            os.replace(built, library)
    except OSError as error:
        raise CacheFolderError(
            f"The neuron device cannot be kept in {library.parent} ({error.strerror}); "
            "free space there or set NEURON_TOOLS_CACHE to another folder."
        ) from error
    _say(f"built in {time.monotonic() - started:.1f} s: {library}")


def _say(text: str) -> None:
    print(f"neuron-tools: {text}", file=sys.stderr, flush=True)


def compile_and_link(compiler: str, extension: Extension, folder: Path) -> Path:
    """Compiles an extension in a folder, a unit to a core, and tells of each that is done.

    Returns:
        The library, in that folder.

    Raises:
        DeviceBuildError: The compiler failed.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed

    import torch

    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    flags = [*_COMPILE_FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *_include_flags()]
    units = unit_texts(extension.sources, min(MAX_UNITS, os.cpu_count() or 1))
    with ThreadPoolExecutor(len(units)) as pool:
        running = [
            pool.submit(_compile_unit, compiler, number, text, folder, flags)
            for number, text in enumerate(units)
        ]
        for done, unit in enumerate(as_completed(running), 1):
            unit.result()
            _say(f"compiled part {done} of {len(units)} of {extension.what}")
    built = folder / extension.file_name
    # PyTorch's libraries are loaded before this one, by name: it needs no path to them.
    link = ["-shared", "-s", *(str(unit.result()) for unit in running)]
    link.append(f"-L{Path(torch.__file__).parent / 'lib'}")
    _run_compiler([compiler, *link, *(f"-l{name}" for name in _LIBRARIES), "-o", str(built)], "linking")
    return built


def library_name() -> str:
    """The file name of the device's library."""
    return device_extension().file_name


def ship(folder: Path) -> list[Path]:
    """Builds both libraries into a folder laid out as `SHIPPED_FOLDER`, for a wheel that carries them.

    Raises:
        DeviceBuildError: There is no compiler, or it failed.
    """
    import tempfile

    compiler = _find_compiler()
    shipped = []
    for extension in (device_extension(), distributed_extension()):
        target = folder / build_key(extension) / extension.file_name
        target.parent.mkdir(parents=True, exist_ok=True)
        kept = built_path(extension)
        if kept.exists():
            shutil.copyfile(kept, target)
        else:
            with tempfile.TemporaryDirectory() as scratch:
                shutil.copyfile(compile_and_link(compiler, extension, Path(scratch)), target)
        shipped.append(target)
    return shipped


def main(arguments: Sequence[str] = ()) -> int:
    """The build step of `make`: builds, or tells where the library stands.

    Args:
        arguments: `device`, `distributed` or both, which is what none means; `--ship FOLDER`: see `ship`.
    """
    # The explicit step must not be done by the import of torch, whose failure is only a warning.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    try:
        if "--ship" in arguments:
            _say("built ahead: " + ", ".join(str(path) for path in ship(Path(arguments[-1]))))
        else:
            _build_named(arguments)
    except DeviceBuildError as error:
        _say(str(error))
        return error.exit_status
    return 0


def _build_named(names: Sequence[str]) -> None:
    extensions = {"device": device_extension(), "distributed": distributed_extension()}
    for extension in [extensions[name] for name in names] or extensions.values():
        existed = library_path(extension).exists()
        library = build(extension)
        if existed:
            _say(f"{extension.what} is built: {library}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
