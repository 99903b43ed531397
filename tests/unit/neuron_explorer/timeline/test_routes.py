"""The data routes: what each answers, and that bad requests get a sentence and no trace."""

import pyarrow as pa
import pytest
from flask import Flask

from neuron_explorer.timeline import operation_engines
from neuron_explorer.timeline.routes import ARROW, register
from neuron_tools.profile.store.layout import NotAProfileError


@pytest.fixture(scope="module")
def client(profile):
    class Library:
        def get(self, wanted):
            if wanted != "known":
                raise NotAProfileError("There is no such profile.")
            return profile

    server = Flask("test")
    register(server, Library())
    return server.test_client()


def rows_of(response):
    assert response.mimetype == ARROW
    return pa.ipc.open_stream(response.get_data()).read_all().to_pylist()


def spans_at(client, place, level=0):
    return rows_of(client.get(f"/data/known/timeline?level={level}&tile=0&tracks={place}"))


def test_tracks_tell_what_there_is(client, profile):
    answer = client.get("/data/known/tracks").get_json()
    assert [track["id"] for track in answer["tracks"]] == [track.id for track in profile.tracks()]
    assert (answer["origin_ns"], answer["start_ns"]) == ("0", 0)
    counter = next(track for track in answer["tracks"] if track["counter"])
    assert (counter["least"], counter["greatest"]) == (0, 6)


def test_details_lead_from_an_instruction_to_what_it_belongs_to(client, places):
    place = places["engine/Tensor"]
    row = spans_at(client, place)[0]["row"]
    answer = client.get(f"/data/known/details?track={place}&row={row}").get_json()
    assert answer["columns"]["opcode"] == "MATMUL"
    assert answer["source"] == {"file": "train.py", "line": 2}
    assert [(one["by"], one["value"]) for one in answer["belongs"]] == [
        ("raw_hlo_id", "1"),
        ("layer", "/model/a"),
    ]


def test_what_belongs_to_an_operation_lights_up_on_every_track(client, places):
    tracks = ",".join(
        str(places[name]) for name in ("hlo", "engine/Tensor", "engine/Vector", "dma_queue/qSyncIn0")
    )
    rows = rows_of(
        client.get(f"/data/known/lit?by=raw_hlo_id&value=2&level=0&tile=0&tiles=2&tracks={tracks}")
    )
    of = {name: [row for row in rows if row["track"] == places[name]] for name in places}
    assert sum(row["count"] for row in of["engine/Tensor"]) == 30
    assert sum(row["count"] for row in of["engine/Vector"]) == 30
    assert {row["duration"] for row in of["hlo"]} == {596}
    assert {row["depth"] for row in of["dma_queue/qSyncIn0"]} == {0, 1}


def test_a_module_lights_up_with_all_inside_it(client, places):
    place = places["engine/Tensor"]
    count = {}
    for layer in ("/model/a", "/model/a/inner", "/model"):
        rows = rows_of(client.get(f"/data/known/lit?by=layer&value={layer}&level=6&tile=0&tracks={place}"))
        count[layer] = sum(row["count"] for row in rows)
    assert count == {"/model/a": 200, "/model/a/inner": 100, "/model": 300}


def test_dependencies_go_up_and_down_the_chain(client, places):
    place = places["engine/Vector"]
    row = next(one["row"] for one in spans_at(client, place) if one["start"] == 20)  # the third instruction
    answer = client.get(f"/data/known/dependencies?track={place}&row={row}").get_json()
    starts = [span["start_ns"] for span in answer["spans"]]
    edges = [(starts[edge["from"]], starts[edge["to"]]) for edge in answer["edges"]]
    assert edges == [(10, 20)]
    tracks = {span["start_ns"]: span["track"] for span in answer["spans"]}
    assert tracks == {10: places["engine/Tensor"], 20: place}


def test_statistics_of_a_range_are_exact(client, places):
    answer = client.get("/data/known/statistics?start=0&end=1000").get_json()
    tensor = next(one for one in answer["tracks"] if one["track"] == places["engine/Tensor"])
    assert tensor["count"] == 50
    assert tensor["busy_share"] == pytest.approx(0.3)
    names = client.get(f"/data/known/names?track={places['engine/Tensor']}&start=0&end=1000").get_json()[
        "names"
    ]
    assert [(one["name"], one["count"], one["time_ns"]) for one in names] == [("MATMUL", 50, 300)]


def test_search_finds_by_name_and_by_column(client):
    hits = client.get("/data/known/search?text=fusion.3").get_json()["hits"]
    assert [hit["start_ns"] for hit in hits] == [1800]
    by_line = client.get("/data/known/search?text=source_line=2&limit=5").get_json()
    assert len(by_line["hits"]) == 5
    assert by_line["is_cut"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("other/tracks", 404),
        ("..%2f..%2fetc/tracks", 404),
        ("known/timeline?level=1&tile=0&tracks=999", 400),
        ("known/timeline", 400),
        ("known/details?track=0&row=99999999", 400),
        ("known/lit?by=layer;DROP&value=1&level=1&tile=0&tracks=0", 400),
        ("known/lit?by=raw_hlo_id&value=1 OR 1&level=1&tile=0&tracks=0", 400),
        ("known/statistics?start=9&end=1", 400),
        ("known/search?limit=5&text=" + "a" * 3000, 400),
    ],
)
def test_bad_requests_get_a_sentence(client, path, status):
    response = client.get(f"/data/{path}")
    assert response.status_code == status
    assert response.mimetype in ("text/plain", "text/html")
    assert "Traceback" not in response.get_data(as_text=True)


def test_operations_have_the_engine_that_they_keep_busy_for_longest(client):
    answer = client.get("/data/known/engines").get_json()
    assert "EVENT_SEMAPHORE" in answer["control"]
    engines = answer["operations"]
    assert set(engines) == {"hlo"}
    assert set(engines["hlo"].values()) <= {"tensor", "vector", "dma"}


def test_very_long_profiles_leave_operations_without_an_engine(profile, monkeypatch):
    monkeypatch.setattr(operation_engines, "MOST_INSTRUCTIONS", 10)
    assert operation_engines.operation_engines(profile)["operations"] == {}


def test_what_is_shown_can_be_had_as_a_query(client, profile, places):
    place = places["engine/Tensor"]
    row = spans_at(client, place)[0]["row"]
    details = client.get(f"/data/known/details?track={place}&row={row}").get_json()
    assert profile.query(details["sql"])["id"].to_pylist() == [details["columns"]["id"]]
    names = client.get(f"/data/known/names?track={place}&start=0&end=100").get_json()
    found = profile.query(names["sql"])
    assert found.num_rows == sum(row["count"] for row in names["names"])
    assert set(found["engine"].to_pylist()) == {"Tensor"}


def test_tracks_of_another_kind_than_is_asked_for_are_left_out(client, places):
    counter, engine = places["counter/PendingDma"], places["engine/Tensor"]
    assert rows_of(client.get(f"/data/known/counters?level=0&tile=0&tracks={engine}")) == []
    assert rows_of(client.get(f"/data/known/timeline?level=0&tile=0&tracks={counter}")) == []
