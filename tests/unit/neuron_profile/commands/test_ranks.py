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
