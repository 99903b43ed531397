"""One window of VS Code in a browser page: what tests do in it, and what they read from it.

Everything waits for a state that can be seen, never for a time: a machine may be slow, and then all is later.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

TIMEOUT_S = float(os.environ.get("VSCODE_TEST_TIMEOUT_S", "120"))
POLL_MS = 100
PATIENCE_S = 15
Found = TypeVar("Found")

# Texts at the ends of the lines in sight, with how far down each stands in its file or cell.
_END_TEXTS = r"""
() => [...document.querySelectorAll(':is(.editor-instance, .notebookOverlay) .view-line')].flatMap(line =>
  [...line.querySelectorAll('span')].map(span => getComputedStyle(span, '::after').content)
    .filter(text => text && text !== 'none' && text !== 'normal')
    .map(text => [parseInt(line.style.top), text.replace(/^"|"$/g, '').replaceAll('\u00a0', ' ')]))
"""

_MOST_CLICKS = 3
_SOON_S = 10.0
_COLOURED = """
async (picture) => {
  const bytes = Uint8Array.from(atob(picture), letter => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  let coloured = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue] = data.subarray(at, at + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 70) coloured += 1;
  }
  return coloured;
}
"""

# What the workbench has written down under a key; it is what a reload finds.
_STORED = """
async (key) => {
  const names = (await indexedDB.databases()).map(({ name }) => name);
  const done = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const found = [];
  for (const name of names.filter((one) => one.startsWith('vscode-web-state-db'))) {
    const database = await done(indexedDB.open(name));
    if (database.objectStoreNames.contains('ItemTable')) {
      const store = database.transaction('ItemTable').objectStore('ItemTable');
      found.push(await done(store.get(key)));
    }
    database.close();
  }
  return found.filter((value) => typeof value === 'string');
}
"""


class Window:
    """A window on a folder; `page` is the playwright page."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.complaints: list[str] = []
        """Errors and warnings that its pages wrote to the console."""
        page.set_default_timeout(TIMEOUT_S * 1000)
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self._widget = page.locator(".quick-input-widget")
        self._field = self._widget.locator('input[type="text"]').first
        self._rows = self._widget.locator(".quick-input-list .monaco-list-row")

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, url: str) -> None:
        """Load the workbench, and wait until it knows the folder and the extension."""
        self.page.goto(url)
        self.ready()

    def ready(self) -> None:
        """Wait until the workbench shows the folder, and what our extension contributes."""
        self.page.locator(".monaco-workbench").wait_for()
        self.page.locator(".activitybar .action-label[aria-label*='Neuron']").first.wait_for()

    def reload(self) -> None:
        """Load the window again by the workbench's command, which first writes down what is open."""
        self._offer("F1", ">Developer: Reload Window", "Developer: Reload Window")
        with self.page.expect_navigation():
            self._field.press("Enter")
        self.ready()

    def close(self) -> None:
        """Close the window as a user does."""
        with self.page.expect_event("close"):
            self.page.close(run_before_unload=True)

    def command(self, title: str, asks: str = "") -> None:
        """Run a command from the palette; with `asks`, until its question is there."""

        def run() -> None:
            self._accept("F1", f">{title}", title)

        self.insist(run, lambda: not asks or self._asked(asks).count())

    def open_file(self, name: str) -> None:
        """Open a file of the folder by its name, or show it where it is open."""
        self._accept("Control+P", name, name)
        self.page.locator(".tab.active", has_text=name).first.wait_for()

    def answer(self, question: str, text: str) -> None:
        """Fill in the input box in which a command asks a question, and accept."""
        asked = self._asked(question)
        asked.wait_for()
        self._field.fill(text)
        self._field.press("Enter")
        asked.wait_for(state="hidden")

    def choose(self, question: str, text: str) -> None:
        """Choose an entry of the list in which a command asks a question."""
        asked = self._asked(question)
        asked.wait_for()
        self._rows.filter(has_text=text).first.click()
        asked.wait_for(state="hidden")

    def accept_file(self, suffix: str) -> None:
        """Accept the file that a dialog proposes for saving."""
        self.until(lambda: self._field.is_visible() and self._field.input_value().endswith(suffix))
        self._field.press("Enter")
        self._field.wait_for(state="hidden")

    def rest_on(self, line: str, shown: str) -> Any:
        """Rest the mouse on a line of the editor until a box with a text is there; returns the box."""
        where = self.page.locator(".view-line", has_text=line).first
        box = self.page.locator(".monaco-hover:visible", has_text=shown).first

        def rest() -> None:
            self.page.mouse.move(0, 0)
            where.hover(position={"x": 150, "y": 8})

        self.insist(rest, box.count)
        return box

    def quick_fixes(self) -> Any:
        """Ask for the actions at the cursor until they are there; returns their list."""
        actions = self.page.locator(".action-widget")
        self.insist(lambda: self.page.keyboard.press("Control+."), actions.count)
        return actions

    def _asked(self, question: str) -> Any:
        """Where a command asks a question: a list by the hint in its field, a box by the text below it."""
        hint = f'input[placeholder*="{question}"]:visible'
        return self._widget.locator(f'{hint}, .quick-input-message:has-text("{question}"):visible').first

    def _accept(self, key: str, text: str, wanted: str) -> None:
        """Open a list by its key, type, and accept the wanted entry."""

        def accept() -> None:
            self._offer(key, text, wanted)
            self._field.press("Enter")

        self.insist(accept, lambda: not self._field.is_visible() or self._field.input_value() != text)

    def _offer(self, key: str, text: str, wanted: str) -> None:
        """Open a list by its key, type, and go to the wanted entry once the list stays as it is."""

        def offered() -> bool:
            self._open_list(key)
            self._field.fill("")  # what is found after typing is not offered: type again
            self._field.fill(text)
            return self._is_soon(lambda: self._focus_entry(wanted))

        self.until(offered)

    def _focus_entry(self, wanted: str) -> bool:
        """Go to an entry of the list, once that stays the same: it goes on searching while it is shown."""
        seen = [self._labels()]
        for _ in range(3):
            self.page.wait_for_timeout(POLL_MS)
            seen.append(self._labels())
        labels = seen[0]
        exact = [label for label in labels if re.match(rf"{re.escape(wanted)}(,|$)", label)]
        found = next(iter(exact or [label for label in labels if label.startswith(wanted)]), None)
        if found is None or any(other != labels for other in seen):
            return False
        focused = self._labels(".focused")
        steps = labels.index(found) - (labels.index(focused[0]) if focused else -1)
        for _ in range(abs(steps)):
            self._field.press("ArrowDown" if steps > 0 else "ArrowUp")
        return self._labels(".focused") == [found]

    def _labels(self, which: str = "") -> list[str]:
        rows = self._widget.locator(f".quick-input-list .monaco-list-row{which}")
        return list(rows.evaluate_all("rows => rows.map(row => row.getAttribute('aria-label') ?? '')"))

    def _open_list(self, key: str) -> None:
        """Press a key until its list is there: a page inside the window may have the keyboard first."""

        def opened() -> bool:
            if not self._field.is_visible():
                self.page.locator(".part.titlebar").click(position={"x": 300, "y": 10}, force=True)
                self.page.keyboard.press(key)
            return self._is_soon(self._field.is_visible)

        self.until(opened)

    def _is_soon(self, question: Callable[[], object], seconds: float = 3) -> bool:
        """Whether a question is answered with something true before another attempt makes sense."""
        until = time.monotonic() + seconds
        while not (found := question()) and time.monotonic() < until:
            self.page.wait_for_timeout(POLL_MS)
        return bool(found)

    def go_to_line(self, line: int) -> None:
        """Put the cursor at the start of a line of the active editor."""
        self._open_list("Control+G")
        self._field.fill(f":{line}")
        self._rows.filter(has_text=f"line {line}").first.wait_for()
        self._field.press("Enter")
        self.until(lambda: not self._field.is_visible() and self.cursor_line() == line)

    def marked_line(self) -> int:
        """Line of the cursor in the only text editor in sight, whatever has the keyboard."""
        number = self.page.locator(".monaco-editor .line-numbers.active-line-number")
        return int(number.first.inner_text() or 0) if number.count() else 0

    def cursor_line(self) -> int:
        """Line of the cursor, as the status bar says."""
        status = self.page.locator("#status\\.editor\\.selection")
        found = re.search(r"Ln (\d+)", status.inner_text() if status.count() else "")
        return int(found.group(1)) if found else 0

    def inner_page(self, selector: str) -> Any:
        """The page in a webview that has an element; waits until there is one."""

        def found() -> Any:
            return next((frame for frame in self.page.frames if _has(frame, selector)), None)

        return self.until(found)

    def timeline(self, name: str = "") -> Any:
        """The page of the timeline of a profile; of the only one where no name is given."""
        return self.inner_page(f'#timeline[aria-label^="Timeline of {name}"]')

    def open_profile(self, name: str) -> None:
        """Open a profile's timeline and wait until it has drawn."""
        self.command("Neuron: Open Profile...", asks="Profile to open")
        self.choose("Profile to open", name)
        self.page.locator(".tab.active", has_text=name).first.wait_for()
        self.painted(name)

    def painted(self, name: str = "") -> None:
        """Wait until a timeline says that it is drawn."""
        self.inner_page(f'#timeline[aria-label^="Timeline of {name}"][aria-busy="false"]')

    def click_span(self, track: str, share: float) -> None:
        """Click at a part of the width of the first row of a timeline's track.

        Tracks move while their names and colours arrive: a click that met nothing is made again.
        """
        timeline = self.timeline()
        details = timeline.locator(".nt-panel-head").first
        for _ in range(_MOST_CLICKS):
            plot = timeline.locator("#timeline canvas").last.bounding_box()
            row = timeline.get_by_text(track, exact=True).first.bounding_box()
            self.page.mouse.click(plot["x"] + share * plot["width"], row["y"] + row["height"] / 2)
            if self._is_soon_visible(details):
                return

    def _is_soon_visible(self, shown: Any) -> bool:
        end = time.monotonic() + _SOON_S
        while not shown.is_visible() and time.monotonic() < end:
            self.page.wait_for_timeout(100)
        return bool(shown.is_visible())

    def ink(self, name: str = "") -> int:
        """Pixels of the timeline in which spans are: those with a strong colour."""
        picture = self.timeline(name).locator("#timeline").screenshot()
        return int(self.page.evaluate(_COLOURED, base64.b64encode(picture).decode()))

    def lenses(self) -> list[str]:
        """Texts of the code lenses in sight."""
        return [text.strip() for text in self.page.locator(".codelens-decoration a").all_inner_texts()]

    def end_texts(self) -> list[str]:
        """Texts at the end of lines in sight, from top to bottom."""
        return [text for _, text in sorted(self.page.evaluate(_END_TEXTS))]

    def end_text_at(self, top: str) -> str:
        """The text at the end of the line that stands so far down (its style's `top`); "" without one."""
        wanted = int(top.removesuffix("px"))
        return next((text for place, text in self.page.evaluate(_END_TEXTS) if place == wanted), "")

    def line(self, text: str) -> Any:
        """A line of an editor by its text."""
        return self.page.locator(".editor-instance .view-line", has_text=text).first

    def toast(self, text: str) -> Any:
        """The notification with a text."""
        toast = self.page.locator(".notification-toast", has_text=text).first
        toast.wait_for()
        return toast

    def remembered(self, key: str) -> Any:
        """What the workbench has written down under a key of our extension for this workspace."""
        stored = self.page.evaluate(_STORED, "neuron-tools.neuron-tools")
        kept = (json.loads(text).get(key) for text in stored)
        return next((value for value in kept if value is not None), None)

    def insist(self, act: Callable[[], object], effect: Callable[[], object]) -> None:
        """Do something until it has an effect: what comes up meanwhile can undo it, and users do it again."""

        def has_effect() -> bool:
            act()
            return self._is_soon(effect, PATIENCE_S)

        self.until(has_effect)

    def until(self, question: Callable[[], Found], timeout_s: float = TIMEOUT_S) -> Found:
        """Wait until a question is answered with something true.

        Raises:
            AssertionError: It was not, in time; with the last answer.
        """
        until = time.monotonic() + timeout_s
        while True:
            found = question()
            if found or time.monotonic() > until:
                assert found, f"waited {timeout_s:g} s in vain; last: {found!r}"
                return found
            self.page.wait_for_timeout(POLL_MS)


def _has(frame: Any, selector: str) -> bool:
    from playwright.sync_api import Error as PageError

    try:
        return bool(frame.locator(selector).count())
    except PageError:  # it went meanwhile
        return False
