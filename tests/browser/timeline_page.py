"""Serves timelines to a real browser: the Explorer's page under its policy, and other Dash applications."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from flask import Flask

TIMELINE = "window.neuronTimelines?.get('timeline')"
IS_SHARP = f"() => {TIMELINE}?.statistics().isSharp"
WAIT_MS = 120_000
# Asked once a frame of the browser: sharp, and neither drawn anew nor of another size since the last frame.
IS_STILL = f"""() => {{
    const {{ isSharp, frames }} = {TIMELINE}?.statistics() ?? {{}};
    const stage = document.querySelector(".nt-stage");
    const seen = isSharp && `${{frames}} ${{stage.clientWidth}} ${{stage.clientHeight}}`;
    const isStill = seen && seen === window.seenInLastFrame;
    window.seenInLastFrame = seen;
    return isStill;
}}"""


def wait_until_still(page: Any) -> None:
    """Wait until the plot is sharp and has kept its size and its picture over two frames."""
    page.evaluate("() => { window.seenInLastFrame = undefined; }")
    page.wait_for_function(IS_STILL, polling="raf", timeout=WAIT_MS)


def wait_for_details(page: Any, name: str = "") -> None:
    """Wait until the panel holds all of the chosen span, and the plot has made room for it."""
    page.locator(".nt-panel h3", has_text=name).wait_for(timeout=WAIT_MS)
    page.locator(".nt-panel .nt-fields").wait_for(timeout=WAIT_MS)
    wait_until_still(page)


@contextmanager
def explorer_at(profiles: Sequence[Path], remembered: Path | None = None) -> Iterator[Any]:
    """Gives the address of the page Timeline of the first profile, with further parameters.

    Args:
        profiles: What the library has.
        remembered: Folder for what the Explorer remembers.
    """
    from neuron_explorer.library import ProfileLibrary, profile_id
    from neuron_explorer.server import make_guarded_server
    from neuron_explorer.user_store import UserStore
    from neuron_tools.listening import bind
    from neuron_tools.web_access import Access

    with ProfileLibrary(profiles) as library, bind(0) as listener:
        access = Access("neuron-explorer", listener.getsockname()[1])
        server = make_guarded_server(library, access, UserStore(remembered))
        page = f"timeline?profile={profile_id(profiles[0])}&"

        def address(parameters: str = "") -> str:
            return access.url.replace("/?", f"/{page}{parameters}", 1)

        with _running(server, listener):
            yield address


@contextmanager
def application_at(server: Flask) -> Iterator[str]:
    """The address of a Dash application."""
    from neuron_tools.listening import bind

    with bind(0) as listener, _running(server, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


@contextmanager
def _running(application: Flask, listener: Any) -> Iterator[None]:
    from werkzeug.serving import make_server

    host, port = listener.getsockname()
    server = make_server(host, port, application, threaded=True, fd=listener.fileno())
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def sharp_page(browser: Any, url: str, **options: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page whose timeline is drawn, and everything that it complains about or asks others for."""
    page = browser.new_page(viewport={"width": 1400, "height": 900}, **options)
    complaints: list[str] = []
    own = "/".join(url.split("/")[:3])
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith(own) or complaints.append(request.url))
    page.on(
        "response", lambda answer: answer.status >= 400 and complaints.append(f"{answer.status} {answer.url}")
    )
    try:
        page.set_default_timeout(WAIT_MS)
        page.goto(url)
        wait_until_still(page)
        yield page, complaints
    finally:
        page.close()
