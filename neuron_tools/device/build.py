"""Builds the C++ extensions of the `neuron` device, once for each PyTorch, Python and source version.

`python -m neuron_tools.device.build` is the explicit step; the first `import torch` does it too. The
library stands in a cache folder, so that an installed package needs no rights to its own folder.
Many processes may ask at once: one builds under a file lock, the others wait and load.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from neuron_tools.device.errors import CacheFolderError, DeviceBuildError, NoCompilerError

MODULE_NAME = "_neuron_device"
SOURCE_FOLDER = Path(__file__).parent / "csrc"
DISTRIBUTED_MODULE = "_neuron_distributed"
DISTRIBUTED_FOLDER = Path(__file__).parent / "distributed" / "csrc"
_COMPILE_FLAGS = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-w",
    "-fvisibility=hidden",
    "-DFMT_HEADER_ONLY=1",
    "-DUSE_KINETO",
)
_LIBRARIES = ("torch", "torch_cpu", "c10", "torch_python")


@dataclass(frozen=True, slots=True)
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
    python = sys.implementation.cache_tag
    return f"torch{torch.__version__}-abi{abi}-{python}-{os.uname().machine}-{digest.hexdigest()[:16]}"


def library_path(extension: Extension | None = None) -> Path:
    """Where the library for this process stands, or will stand; the device's if None is named."""
    chosen = extension or device_extension()
    return cache_folder() / chosen.folder / build_key(chosen) / chosen.file_name


def build(extension: Extension | None = None) -> Path:
    """Builds a library (the device's if None) unless it is there, and returns its path.

    Raises:
        NoCompilerError: There is no C++ compiler.
        CacheFolderError: The cache folder cannot be written.
        DeviceBuildError: The compiler failed.
    """
    chosen = extension or device_extension()
    library = library_path(chosen)
    if library.exists():
        return library
    with _locked(library.parent):
        if not library.exists():
            _compile(chosen, library)
    return library


def load(extension: Extension | None = None) -> ModuleType:
    """Builds a library (the device's if None) if needed, loads it and returns the extension module."""
    chosen = extension or device_extension()
    loaded = sys.modules.get(chosen.name)
    if loaded is not None:
        return loaded
    library = str(build(extension))
    loader = importlib.machinery.ExtensionFileLoader(chosen.name, library)
    spec = importlib.util.spec_from_file_location(chosen.name, library, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        message = f"The built library {library} does not load ({error}); delete that file to build it anew."
        raise DeviceBuildError(message) from error
    sys.modules[chosen.name] = module
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


def _compile_source(compiler: str, source: Path, folder: Path, flags: list[str]) -> Path:
    target = folder / f"{source.stem}.o"
    _run_compiler([compiler, *flags, "-c", str(source), "-o", str(target)], source.name)
    return target


def _compile(extension: Extension, library: Path) -> None:
    import tempfile

    import torch

    compiler = _find_compiler()
    started = time.monotonic()
    print(f"neuron-tools: building {extension.what} for torch {torch.__version__} (once)", file=sys.stderr)
    try:
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            built = _compile_and_link(compiler, extension, Path(folder))
            os.replace(built, library)
    except OSError as error:
        raise CacheFolderError(
            f"The neuron device cannot be kept in {library.parent} ({error.strerror}); "
            "free space there or set NEURON_TOOLS_CACHE to another folder."
        ) from error
    print(f"neuron-tools: built in {time.monotonic() - started:.1f} s: {library}", file=sys.stderr)


def _compile_and_link(compiler: str, extension: Extension, folder: Path) -> Path:
    from concurrent.futures import ThreadPoolExecutor

    import torch

    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    flags = [*_COMPILE_FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *_include_flags()]
    # The largest first: the two workers then end together.
    sources = sorted(extension.sources.glob("*.cpp"), key=lambda source: -source.stat().st_size)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: _compile_source(compiler, source, folder, flags), sources))
    built = folder / extension.file_name
    torch_libraries = str(Path(torch.__file__).parent / "lib")
    link = [
        "-shared",
        "-s",
        *map(str, sorted(objects)),
        f"-L{torch_libraries}",
        f"-Wl,-rpath,{torch_libraries}",
    ]
    _run_compiler([compiler, *link, *(f"-l{name}" for name in _LIBRARIES), "-o", str(built)], "linking")
    return built


def library_name() -> str:
    """The file name of the device's library."""
    return device_extension().file_name


def main() -> int:
    """The build step of `make`: builds, or tells where the library stands."""
    # The explicit step must not be done by the import of torch, whose failure is only a warning.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    try:
        for extension in (device_extension(), distributed_extension()):
            existed = library_path(extension).exists()
            library = build(extension)
            if existed:
                print(f"neuron-tools: {extension.what} is built: {library}", file=sys.stderr)
    except DeviceBuildError as error:
        print(f"neuron-tools: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
