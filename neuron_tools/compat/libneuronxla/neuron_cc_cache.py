"""`libneuronxla.neuron_cc_cache`: the folder where libraries keep files beside compiled graphs.

Libraries such as optimum-neuron put registries of models, and models that they compiled, below a folder of
the compiler's version in the compile cache. What is compiled here is kept by `neuron_tools.neff.cache`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from neuron_tools.compat.absent import names_of
from neuron_tools.compat.neuronxcc import __version__ as compiler_version
from neuron_tools.errors import UsageError
from neuron_tools.neff.cache import URL_VARIABLE, cache_of_user, digest
from neuron_tools.neff.files import write_whole

__all__ = ["CacheUrl", "CompileCache", "CompileCacheFs", "CompileCacheS3", "create_compile_cache"]
S3 = "s3"


class CacheUrl:
    """Where a compile cache is.

    Args:
        url: A folder, with or without `file://`, or an address of Amazon S3.
        url_type: "fs" or "s3"; None to see it from the address.
    """

    def __init__(self, url: str, url_type: str | None = None) -> None:
        self.url = url.removeprefix("file://")
        self.url_type = url_type or (S3 if url.startswith(f"{S3}://") else "fs")

    @staticmethod
    def get_cache_url(cache_dir: str | None = None) -> CacheUrl:
        """Where the user's compile cache is.

        Args:
            cache_dir: A folder or address; None for what `NEURON_COMPILE_CACHE_URL` names, else the default.

        Raises:
            UsageError: The compile cache is switched off, or the user has no home.
        """
        chosen = cache_dir or os.environ.get(URL_VARIABLE, "")
        if chosen.startswith(f"{S3}://"):
            return CacheUrl(chosen)
        cache = cache_of_user(folder=chosen)
        if cache is None:
            raise UsageError(f"There is no compile cache: {URL_VARIABLE} must name a folder for its files.")
        return CacheUrl(str(cache.folder))

    def is_s3(self) -> bool:
        """Whether it is an address of Amazon S3."""
        return self.url_type == S3

    def is_fs(self) -> bool:
        """Whether it is a folder."""
        return not self.is_s3()


class CompileCache:
    """What every compile cache has.

    Args:
        cache_url: Where it is.
    """

    def __init__(self, cache_url: CacheUrl) -> None:
        self.cache_url = cache_url
        self.cache_path = os.path.join(cache_url.url, f"neuronxcc-{compiler_version}")

    def get_cache_dir(self, model_hash: str, compile_flags_str: str) -> str:
        """The folder of a graph that is compiled with some flags."""
        return self.get_cache_dir_with_cache_key(f"MODULE_{model_hash}+{digest(compile_flags_str)[:8]}")

    def get_cache_dir_with_cache_key(self, cache_key: str) -> str:
        """The folder of a name below that of the compiler's version."""
        return os.path.join(self.cache_path, cache_key)


class CompileCacheFs(CompileCache):
    """A compile cache in a folder; files appear whole or not at all."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        return os.path.exists(path)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with what is in it; nothing where there is neither."""
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove all that was kept for this version of the compiler."""
        self.remove(self.cache_path)

    def upload_file(self, cache_path: str, src_path: str) -> None:
        """Keep a copy of a file."""
        _keep(cache_path, Path(src_path).read_bytes())

    def upload_string_to_file(self, cache_path: str, data: str) -> None:
        """Keep a text."""
        _keep(cache_path, data.encode())

    def download_file(self, filename: str, dst_path: str) -> None:
        """Copy a file that is kept."""
        shutil.copyfile(filename, dst_path)

    def download_file_to_string(self, filename: str, limit: int | None = None) -> str:
        """The text of a file, or its first `limit` bytes."""
        return Path(filename).read_bytes()[:limit].decode(errors="replace")


class CompileCacheS3(CompileCache):
    """A compile cache in Amazon S3, which is not there.

    Args:
        cache_url: Its address.

    Raises:
        UsageError: Always.
    """

    def __init__(self, cache_url: CacheUrl) -> None:
        raise UsageError(f"{cache_url.url} is in Amazon S3: {URL_VARIABLE} must name a folder here.")


def create_compile_cache(cache_url: CacheUrl) -> CompileCache:
    """The compile cache at an address.

    Raises:
        UsageError: The address is in Amazon S3.
    """
    return CompileCacheS3(cache_url) if cache_url.is_s3() else CompileCacheFs(cache_url)


def _keep(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(Path(path), data)


def __getattr__(name: str) -> Any:
    return names_of(__name__, "AWS's compiler is not here, and compiled graphs are kept otherwise.")(name)
