import os

from neuron_tools.capture.log_lock import LogLock, is_in_use


def test_a_log_is_in_use_while_anybody_holds_it(tmp_path):
    first, second = LogLock(tmp_path), LogLock(tmp_path)
    assert is_in_use(tmp_path)
    first.release()
    assert is_in_use(tmp_path)
    second.release()
    assert not is_in_use(tmp_path)


def test_asking_does_not_take_it(tmp_path):
    assert not is_in_use(tmp_path)
    assert not is_in_use(tmp_path)


def test_the_system_gives_it_back_when_its_holder_ends(tmp_path):
    process = os.fork()
    if not process:
        LogLock(tmp_path)
        os._exit(0)
    os.waitpid(process, 0)
    assert not is_in_use(tmp_path)


def test_a_forked_childs_release_leaves_the_parents_lock(tmp_path):
    lock = LogLock(tmp_path)
    process = os.fork()
    if not process:
        lock.release()
        os._exit(0)
    os.waitpid(process, 0)
    assert is_in_use(tmp_path)
    lock.release()
    assert not is_in_use(tmp_path)


def test_a_folder_that_is_not_there_is_not_in_use(tmp_path):
    LogLock(tmp_path / "none").release()
    assert not is_in_use(tmp_path / "none")
