"""The cache gives back what was kept, stays within its limit, and fails in one sentence."""

import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neuron_tools.neff import Neff, NeffError
from neuron_tools.neff.cache import DEFAULT_LIMIT_BYTES, CompileCache, cache_of_user, digest
from tests.unit.neff.computation import program


@pytest.fixture(scope="module")
def neff():
    return Neff(program())


@pytest.fixture(scope="module")
def size(neff):
    return len(neff.to_bytes())


def files(cache):
    return sorted(str(path.relative_to(cache.folder)) for path in cache.folder.rglob("*") if path.is_file())


def test_what_is_kept_is_found_by_another_process(neff, tmp_path):
    CompileCache(tmp_path / "cache").keep("a", neff)
    assert CompileCache(tmp_path / "cache").find("a").to_bytes() == neff.to_bytes()
    assert CompileCache(tmp_path / "cache").find("b") is None


def test_it_is_made_only_once(neff, tmp_path):
    made = []

    def make():
        made.append(1)
        return neff

    for _ in range(3):
        CompileCache(tmp_path).get("a", make)
    assert len(made) == 1


def test_the_folder_stays_below_its_limit_and_the_least_used_go_first(neff, size, tmp_path):
    cache = CompileCache(tmp_path, limit_bytes=4 * size + 10)
    for number in range(4):
        cache.keep(f"{number}", neff)
        os.utime(tmp_path / f"MODULE_{number}/model.neff", ns=(number, number))
    assert cache.find("0") is not None  # used just now
    cache.keep("4", neff)
    assert files(cache) == [f"MODULE_{number}/model.neff" for number in (0, 3, 4)]
    assert len(list(tmp_path.iterdir())) == 3
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.neff")) <= cache.limit_bytes


def test_what_is_larger_than_the_cache_is_not_kept(neff, size, tmp_path):
    cache = CompileCache(tmp_path / "cache", limit_bytes=size - 1)
    assert cache.get("a", lambda: neff) is neff
    assert not cache.folder.exists()


def test_a_damaged_file_is_made_anew(neff, tmp_path):
    cache = CompileCache(tmp_path)
    cache.keep("a", neff)
    (tmp_path / "MODULE_a/model.neff").write_bytes(b"PK half of it")
    assert cache.find("a") is None
    assert cache.get("a", lambda: neff) is neff
    assert cache.find("a") is not None


def test_a_folder_that_cannot_be_looked_into_holds_nothing_and_is_one_sentence(neff, tmp_path):
    cache = CompileCache(tmp_path / ("long" * 100))
    assert cache.find("a") is None
    assert cache.find_operation("a") is None
    with pytest.raises(NeffError, match="cannot be written"):
        cache.keep("a", neff)


def test_many_writers_and_readers_of_one_key_see_whole_files(neff, tmp_path):
    expected = neff.to_bytes()

    def use(number):
        cache = CompileCache(tmp_path)
        if number % 2:
            cache.keep("a", neff)
        found = cache.find("a")
        return found is None or found.to_bytes() == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(32)))
    assert files(CompileCache(tmp_path)) == ["MODULE_a/model.neff"]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(neff, tmp_path, monkeypatch):
    def fails(source, target):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(NeffError, match=r"No space left on device.*NEURON_COMPILE_CACHE_URL") as refusal:
        CompileCache(tmp_path).keep("a", neff)
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "folder", "limit"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/neuron-tools/compiled", DEFAULT_LIMIT_BYTES),
        ({"XDG_CACHE_HOME": "/c"}, "/c/neuron-tools/compiled", DEFAULT_LIMIT_BYTES),
        ({"NEURON_COMPILE_CACHE_URL": "file:///data/cache"}, "/data/cache", DEFAULT_LIMIT_BYTES),
        ({"NEURON_COMPILE_CACHE_URL": "/d", "NEURON_TOOLS_COMPILE_CACHE_BYTES": "5"}, "/d", 5),
    ],
)
def test_the_environment_chooses_folder_and_limit(environment, folder, limit):
    cache = cache_of_user(environment)
    assert (str(cache.folder), cache.limit_bytes) == (folder, limit)


def test_a_compiler_option_wins_over_the_environment():
    environment = {"NEURON_COMPILE_CACHE_URL": "/a"}
    assert str(cache_of_user(environment, "/b").folder) == "/b"


@pytest.mark.parametrize("word", ["off", "OFF", "none", "0"])
def test_it_can_be_switched_off(word):
    assert cache_of_user({"NEURON_COMPILE_CACHE_URL": word}) is None


def test_keys_tell_parts_apart():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", b"c") == digest(b"ab", "c")


def test_without_home_the_cache_is_in_the_users_own_folder_or_nowhere(monkeypatch):
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert cache_of_user({}).folder == Path(home, ".cache", "neuron-tools", "compiled")

    def nobody(user):
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache_of_user({}) is None
    assert cache_of_user({"XDG_CACHE_HOME": "/x"}).folder == Path("/x/neuron-tools/compiled")
