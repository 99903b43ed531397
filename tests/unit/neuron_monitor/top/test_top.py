import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings, strategies as st
from textual.widgets import DataTable, Static, Tab, Tree

from neuron_monitor.top import app as top
from neuron_monitor.top.app import TopApp
from neuron_monitor.top.bars import ASCII, UNICODE, bar, sparkline
from neuron_monitor.top.dialogs import ConfirmScreen, HelpScreen
from neuron_monitor.units import binary_size, metric, percent, seconds
from tests.fixtures.neuron_sysfs import held, process_core

OTHER_PID = 1


@settings(deadline=None)
@given(share=st.floats(-1, 2), width=st.integers(1, 40), glyphs=st.sampled_from([UNICODE, ASCII]))
def test_a_bar_is_as_wide_as_asked(share, width, glyphs):
    text = bar(share, width, glyphs)
    assert len(text) == width
    assert (text == glyphs.empty * width) == (share <= 0)
    if share >= 1:
        assert text == glyphs.parts[-1] * width


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e12), max_size=80), st.integers(1, 40))
def test_a_sparkline_is_as_wide_as_asked(values, width):
    assert len(sparkline(values, width, max(values, default=0.0))) == width


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (percent(0.431), "43 %"),
        (binary_size(1536), "1.5 KiB"),
        (binary_size(0), "0 B"),
        (metric(1.25e12), "1.25 T"),
        (metric(0), "0"),
        (seconds(0.0034), "3.4 ms"),
        (seconds(None), "–"),
        (seconds(float("nan")), "–"),
        (seconds(0), "0 ns"),
        (seconds(90), "90 s"),
    ],
)
def test_numbers_as_people_read_them(text, expected):
    assert text == expected


@pytest.fixture
def make_app(simulated, make_sampler, clock, pid):
    """The application on a device with two processes, one of which works."""

    def publish(second):
        for process, core in ((pid, 0), (OTHER_PID, 5)):
            busy = second * 500_000_000 if process == pid else 0
            content = process_core(
                simulated,
                core,
                busy_ns=busy,
                inference_count=busy,
                flop_count=busy * 1000,
                device_memory=held(tensors=(core + 1) << 30),
            )
            simulated.publish(
                process,
                [core],
                tag="train" if process == pid else "idle",
                cores={str(core): content},
                elapsed_ns=second * 10**9,
                published_at=float(second),
            )

    def make(**options):
        publish(1)
        app = TopApp(make_sampler(simulated), 3600.0, **options)
        publish(2)
        clock.pass_seconds(1)
        return app

    return make


def run(app, *keys, size=(80, 24), look=lambda app: None):
    """Runs the application, presses keys, and looks at it."""

    async def session():
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            return look(app)

    # In a thread of its own: the browser tests keep an event loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, session()).result()


def shown(app, name):
    return str(app.query_one(f"#{name}", Static).content)


def rows(app):
    table = app.query_one("#processes", DataTable)
    return [table.get_row_at(number)[1] for number in range(table.row_count)]


def test_cores_processes_and_memory_are_shown(make_app):
    def look(app):
        assert "running on simulated (trn2.48xlarge)" in shown(app, "title")
        assert "NeuronCore v3 Utilization (Avg: 6.25%)" in shown(app, "core-heading")
        assert " 50%]" in shown(app, "cores")
        assert "Total 7G" in shown(app, "memory")
        assert sorted(rows(app)) == ["idle", "train"]
        assert len(app.query(Tab)) == 3

    run(make_app(), look=look)


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (200, 60)])
def test_no_line_is_wider_than_the_terminal(make_app, size):
    def look(app):
        for name in ("core-heading", "cores", "processors", "memory", "activity"):
            assert max(len(line) for line in shown(app, name).splitlines()) <= size[0]

    run(make_app(), size=size, look=look)


def test_ascii_only_draws_no_other_character_in_the_panels(make_app):
    def look(app):
        for name in ("cores", "processors", "activity"):
            assert shown(app, name).isascii()

    run(make_app(ascii_only=True), look=look)


def test_f_shows_flops(make_app):
    run(make_app(), "f", look=lambda app: shown(app, "core-heading").index("Total: 500 GFLOP/s"))


def test_a_tab_chooses_one_process(make_app, pid):
    def look(app):
        assert rows(app) == ["idle"]
        assert "Total 6G" in shown(app, "memory")

    run(make_app(), "2", look=look)
    run(make_app(), "d", "a", look=lambda app: rows(app).index("train"))


def test_processes_are_ordered_and_filtered(make_app):
    assert run(make_app(), "s", look=rows) == ["train", "idle"]
    assert run(make_app(), "s", "s", look=rows) == ["idle", "train"]
    assert run(make_app(), "slash", "i", "d", "l", "enter", look=rows) == ["idle"]


def test_x_expands_the_whole_tree_and_collapses_it(make_app):
    def expanded(app):
        return [node.is_expanded for node in app.query_one("#tree", Tree).root.children]

    assert run(make_app(), "x", look=expanded) == [True]
    assert run(make_app(), "x", "x", look=expanded) == [False]


def test_a_process_is_ended_only_after_yes(make_app, monkeypatch):
    ended = []
    monkeypatch.setattr(top.os, "kill", lambda pid, number: ended.append((pid, number)))
    run(make_app(), "k", look=lambda app: isinstance(app.screen, ConfirmScreen) or pytest.fail("no question"))
    run(make_app(), "k", "n")
    assert ended == []
    run(make_app(), "k", "y")
    assert ended == [(OTHER_PID, signal.SIGTERM)]


def test_a_process_that_may_not_be_ended_is_no_crash(make_app, monkeypatch):
    def refuse(pid, number):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(top.os, "kill", refuse)
    run(make_app(), "k", "y")


def test_help_and_pause(make_app):
    run(
        make_app(),
        "question_mark",
        look=lambda app: isinstance(app.screen, HelpScreen) or pytest.fail("none"),
    )
    run(make_app(), "space", look=lambda app: shown(app, "title").index("[paused]"))


def test_a_machine_without_devices_is_no_crash(tmp_path, make_sampler):
    from tests.fixtures.neuron_sysfs import SysfsTree

    sampler = make_sampler(SysfsTree(tmp_path / "none", devices=0, simulated=False))
    run(TopApp(sampler, 3600.0), look=lambda app: shown(app, "cores").index("No Neuron device"))
