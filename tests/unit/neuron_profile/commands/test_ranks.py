import json


def test_tables_of_ranks_engines_and_operations(make_profile, command):
    answer = command("ranks", make_profile(), make_profile("second.nprof"))
    assert answer.status == 0
    for title in ("Ranks", "Engines", "Operations"):
        assert title in answer.out


def test_json(make_profile, command):
    found = json.loads(command("ranks", make_profile(), "--json").out)["result"]
    assert [row["device_ns"] for row in found["ranks"]] == [200]
    assert found["ranks"][0]["straggler"] is False


def test_a_scheduler_without_dask_is_refused(make_profile, command):
    answer = command("ranks", make_profile(), "--scheduler", "tcp://localhost:1")
    assert answer.status == 2
    assert "--engine dask" in answer.err


def test_an_analysis_of_each_profile(make_profile, command):
    paths = [make_profile(), make_profile("second.nprof")]
    found = json.loads(command("ranks", *paths, "--each", "idle", "--each", "queue", "--json").out)["ranks"]
    assert [row["path"] for row in found] == [str(path) for path in paths]
    assert found[0]["results"]["idle"] == found[1]["results"]["idle"] != []
    assert "lacks the data" in found[0]["lacks"]["queue"]
    answer = command("ranks", *paths, "--each", "idle", "--each", "advice")
    assert answer.status == 0
    assert answer.out.count("\nidle\n") == answer.out.count("\nadvice\n") == 2


def test_each_rank_against_another_run(make_profile, command):
    path = make_profile()
    answer = command("ranks", path, "--base", path.parent / "*.nprof", "--json")
    (row,) = json.loads(answer.out)["ranks"]
    assert row["delta_ns"] == 0
    assert row["base"] == row["new"] == str(path)
    assert "Moved most" in command("ranks", path, "--base", path).out
    assert command("ranks", path, "--base", path, "--each", "idle").status == 2
