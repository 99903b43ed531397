"""The folder where libraries keep files beside compiled graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_tools.compat.libneuronxla import neuron_cc_cache
from neuron_tools.compat.libneuronxla.neuron_cc_cache import CacheUrl, CompileCacheS3, create_compile_cache
from neuron_tools.errors import UsageError


@pytest.fixture
def cache(tmp_path):
    return create_compile_cache(CacheUrl.get_cache_url(cache_dir=str(tmp_path)))


def test_the_environment_names_the_folder_and_an_argument_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", f"file://{tmp_path}")
    assert CacheUrl.get_cache_url().url == str(tmp_path)
    assert CacheUrl.get_cache_url(cache_dir="/elsewhere").url == "/elsewhere"


def test_what_is_kept_is_found_again(cache, tmp_path):
    file = Path(cache.get_cache_dir_with_cache_key("registry")) / "entry.json"
    assert not cache.exists(str(file))
    cache.upload_string_to_file(str(file), "naïve")
    cache.upload_file(f"{file}.copy", str(file))
    cache.download_file(f"{file}.copy", str(tmp_path / "copy"))
    assert cache.exists(str(file))
    assert cache.download_file_to_string(str(file)) == "naïve"
    assert cache.download_file_to_string(str(tmp_path / "copy"), limit=2) == "na"


def test_removing_leaves_nothing(cache):
    folder = cache.get_cache_dir_with_cache_key("registry")
    cache.upload_string_to_file(f"{folder}/one", "1")
    cache.upload_string_to_file(f"{folder}/two", "2")
    cache.remove(f"{folder}/one")
    cache.remove(f"{folder}/one")
    assert not cache.exists(f"{folder}/one")
    assert cache.exists(f"{folder}/two")
    cache.clean()
    assert not cache.exists(cache.cache_path)


def test_other_flags_are_another_folder(cache):
    folders = {cache.get_cache_dir("7", flags) for flags in ("-O1", "-O2", "-O1")}
    assert len(folders) == 2
    assert all("MODULE_7+" in folder for folder in folders)


def test_a_cache_that_is_not_there_is_refused(monkeypatch):
    url = CacheUrl.get_cache_url(cache_dir="s3://bucket/cache")
    assert url.is_s3()
    assert not url.is_fs()
    with pytest.raises(UsageError, match="s3://bucket/cache is in Amazon S3"):
        create_compile_cache(url)
    with pytest.raises(UsageError, match="Amazon S3"):
        CompileCacheS3(url)
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", "off")
    with pytest.raises(UsageError, match="There is no compile cache"):
        CacheUrl.get_cache_url()


def test_what_is_not_there_says_so_when_it_is_called():
    with pytest.raises(RuntimeError, match=r"neuron_cc_cache\.get_cached_hlo is not there"):
        neuron_cc_cache.get_cached_hlo()
