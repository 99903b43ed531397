"""The live page in a real Chromium: it fills, moves, pauses, selects, downloads, and changes its theme."""

import logging
import os
import threading
from contextlib import contextmanager

import pytest

from neuron_monitor.api.host import Host
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.dashboard.app import make_local_app
from neuron_monitor.dashboard.collector import Collector
from neuron_monitor.dashboard.server import guard
from neuron_tools.listening import bind
from neuron_tools.web_access import Access
from tests.fixtures.neuron_sysfs import SysfsTree, held, process_core

pytestmark = pytest.mark.browser
WAIT_MS = 120_000
PERIOD_S = 0.2  # the shortest: answers take longer on a busy machine


@contextmanager
def monitored(folder, latency_s=0.0):
    """The address of a page of a tree whose process works on two cores, updated five times a second.

    Args:
        latency_s: How long each answer is on its way.
    """
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    tree = SysfsTree(folder / "tree")
    second = iter(range(1, 10**6))

    def publish():
        now = next(second)
        cores = {
            str(core): process_core(
                tree,
                core,
                status={"success": 9 * now},
                inference_count=9 * now,
                busy_ns=now * 600_000_000,
                engine_busy_ns={"tensor": now * 400_000_000},
                device_memory=held(tensors=20 << 30),
                latency={"total": {"4000000": now}, "device": {"3000000": now}},
            )
            for core in (0, 1)
        }
        tree.publish(
            os.getpid(), [0, 1], tag="pretrain", cores=cores, elapsed_ns=now * 10**9, published_at=float(now)
        )

    publish()
    collector = Collector(Sampler(DeviceTree(str(tree.root)), Host()), 1000)
    stopped = threading.Event()

    def work():
        while not stopped.wait(PERIOD_S):
            publish()
            collector.update()

    listener = bind(0)
    access = Access("neuron-monitor", listener.getsockname()[1])
    app = guard(make_local_app(collector, PERIOD_S, "test-host"), access)

    def answer(environ, start_response):
        if environ["REQUEST_METHOD"] == "POST":
            stopped.wait(latency_s)
        return app(environ, start_response)

    server = make_server("127.0.0.1", access.port, answer, threaded=True, fd=listener.fileno())
    for target in (work, server.serve_forever):
        threading.Thread(target=target, daemon=True).start()
    try:
        yield access.url
    finally:
        stopped.set()
        server.shutdown()
        listener.close()


@pytest.fixture(scope="module")
def page_address(tmp_path_factory):
    with monitored(tmp_path_factory.mktemp("monitor")) as address:
        yield address


@contextmanager
def opened(chromium, page_address):
    """The page, once it shows the process; it must not complain."""
    page = chromium.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(WAIT_MS)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda told: page.problems.append(told.text) if told.type == "error" else None)
    page.goto(page_address)
    page.wait_for_selector("#processes tbody tr")
    yield page
    assert page.problems == []
    page.close()


@pytest.fixture
def page(chromium, page_address):
    with opened(chromium, page_address) as page:
        yield page


# Of the chart's points: how many there are, and when the newest was; 0 until the chart is first drawn.
TIMES = "document.querySelector('#chart-utilization .js-plotly-plot')?.data?.[0].x"
POINTS = f"({TIMES}?.length ?? 0)"
NEWEST = f"Number({TIMES}?.at(-1) ?? 0)"


def wait_for_text(page, selector, part):
    """Wait until an element shows a text."""
    page.locator(selector, has_text=part).wait_for()


def wait_for_news(page):
    """Wait until the chart has grown."""
    before = page.evaluate(NEWEST)
    page.wait_for_function(f"() => {NEWEST} > {before}")


def test_the_page_fills_and_moves(page):
    wait_for_text(page, "#processes", "pretrain")
    page.wait_for_function("() => document.querySelectorAll('.core:not(.free)').length === 2")
    page.wait_for_function(f"() => {POINTS} > 2")
    wait_for_news(page)
    assert "token" not in page.evaluate("location.href")


def test_answers_that_take_longer_than_a_period_are_shown(chromium, tmp_path):
    with monitored(tmp_path, 3 * PERIOD_S) as address, opened(chromium, address) as page:
        page.wait_for_function(f"() => {POINTS} > 0")
        wait_for_news(page)
        wait_for_news(page)


def test_pause_stops_the_page_and_goes_on(page):
    page.click("#pause")
    wait_for_text(page, "#pause", "Go on")
    page.click("#pause")
    wait_for_text(page, "#pause", "Pause")
    wait_for_news(page)


def test_a_range_is_selected_in_all_charts_and_downloaded(page):
    page.wait_for_function(f"() => {POINTS} > 8")
    plot = page.locator("#chart-utilization .nsewdrag").first
    box = plot.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=5)
    page.mouse.up()
    wait_for_text(page, "#range-text", "UTC")
    wait_for_text(page, "#pause", "Go on")
    with page.expect_download() as download:
        page.click("#csv")
    text = download.value.path().read_text().splitlines()
    assert text[0].startswith("time_ms,utilization_mean,")
    assert 2 <= len(text) < page.evaluate(POINTS) + 2
    page.click("#clear")
    wait_for_text(page, "#pause", "Pause")


def test_the_theme_changes_and_is_kept(page):
    def wait_for_theme(name):
        page.wait_for_function("(name) => document.documentElement.dataset.theme === name", arg=name)

    other = "light" if page.evaluate("document.documentElement.dataset.theme") == "dark" else "dark"
    page.click("#toggle-theme")
    wait_for_theme(other)
    page.reload()
    page.wait_for_selector("#processes tbody tr")
    wait_for_theme(other)
    page.evaluate("localStorage.clear()")
