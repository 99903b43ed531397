"""One window of VS Code in a browser page: what tests do in it, and what they read from it."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

TIMEOUT_MS = 45_000
Found = TypeVar("Found")

_END_TEXTS = r"""
() => [...document.querySelectorAll('.view-lines .view-line')].flatMap(line =>
  [...line.querySelectorAll('span')].map(span => getComputedStyle(span, '::after').content)
    .filter(text => text && text !== 'none' && text !== 'normal')
    .map(text => [parseInt(line.style.top), text.replace(/^"|"$/g, '').replaceAll('\u00a0', ' ')]))
"""


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


class Window:
    """A window; `page` is the playwright page."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, url: str) -> None:
        """Load the workbench."""
        self.page.goto(url)
        self.page.locator(".monaco-workbench").wait_for(timeout=TIMEOUT_MS)
        self.page.locator(".explorer-folders-view .monaco-list-row").first.wait_for(timeout=TIMEOUT_MS)

    def close(self) -> None:
        """Close the window as a user does."""
        with self.page.expect_event("close"):
            self.page.close(run_before_unload=True)

    def focus(self) -> None:
        """Take the keyboard out of a webview, which would keep it."""
        self.page.locator(".part.titlebar").click(position={"x": 300, "y": 10}, force=True)

    def command(self, title: str) -> None:
        """Run a command from the palette."""
        self._pick("F1", f">{title}", title)

    def answer(self, text: str) -> None:
        """Fill in the input box that a command shows, and accept."""
        field = self.page.locator('.quick-input-widget input[type="text"]').first
        field.wait_for(timeout=TIMEOUT_MS)
        field.fill(text)
        self.page.keyboard.press("Enter")

    def choose(self, text: str) -> None:
        """Choose an entry of the list that a command shows."""
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=text).first
        row.wait_for(timeout=TIMEOUT_MS)
        row.click()

    def open_file(self, name: str) -> None:
        """Open a file of the folder by its name."""
        tab = self.page.locator(".tab.active", has_text=name)

        def opened() -> bool:
            self._pick("Control+P", name, name)
            return self._comes(tab)

        self.until(opened)

    def _comes(self, locator: Any, seconds: float = 8.0) -> bool:
        """Whether something is there soon."""
        until = time.monotonic() + seconds
        while not locator.count() and time.monotonic() < until:
            self.page.wait_for_timeout(100)
        return bool(locator.count())

    def _pick(self, key: str, text: str, row: str) -> None:
        """Open a list, type, take a row. Asks again: a list does not learn of what is found after typing."""
        field = self.page.locator('.quick-input-widget input[type="text"]').first
        rows = self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=row)

        def offered() -> bool:
            self.focus()
            self.page.keyboard.press(key)
            field.wait_for(timeout=TIMEOUT_MS)
            field.fill(text)
            if not self._comes(rows, 2.0):
                self.page.keyboard.press("Escape")
                return False
            rows.first.click()
            return True

        self.until(offered)

    def go_to_line(self, line: int) -> None:
        """Put the cursor at the start of a line of the active editor."""
        self.page.keyboard.press("Control+G")
        field = self.page.locator('.quick-input-widget input[type="text"]').first
        field.wait_for(timeout=TIMEOUT_MS)
        field.fill(f":{line}")
        self.page.keyboard.press("Enter")
        self.until(lambda: self.cursor_line() == line)

    def marked_line(self) -> int:
        """Line of the cursor in the only text editor in sight, whatever has the keyboard."""
        number = self.page.locator(".monaco-editor .line-numbers.active-line-number")
        return int(number.first.inner_text() or 0) if number.count() else 0

    def cursor_line(self) -> int:
        """Line of the cursor, as the status bar says."""
        status = self.page.locator("#status\\.editor\\.selection")
        found = re.search(r"Ln (\d+)", status.inner_text() if status.count() else "")
        return int(found.group(1)) if found else 0

    def timeline(self) -> Any:
        """The frame of the timeline's page."""
        return self.page.frame_locator("iframe.webview.ready").last.frame_locator("iframe#active-frame")

    def open_profile(self, name: str) -> None:
        """Open a profile's timeline and wait until it has painted."""
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=name)
        tab = self.page.locator(".tab.active", has_text=name)

        def opened() -> bool:
            self.command("Neuron: Open Profile...")
            if not self._comes(row):
                self.page.keyboard.press("Escape")
                return False
            row.first.click()
            return self._comes(tab)

        self.until(opened, 2 * TIMEOUT_MS / 1000)
        self.painted()

    def painted(self) -> None:
        """Wait until the timeline has drawn something."""
        self.timeline().locator("#timeline canvas").first.wait_for(timeout=TIMEOUT_MS)
        self.until(lambda: self.ink() > 1500)

    def ink(self) -> int:
        """Pixels of the timeline in which spans are: those with a strong colour."""
        picture = self.timeline().locator("#timeline").screenshot()
        return int(self.page.evaluate(_COLOURED, base64.b64encode(picture).decode()))

    def lenses(self) -> list[str]:
        """Texts of the code lenses in sight."""
        return [text.strip() for text in self.page.locator(".codelens-decoration a").all_inner_texts()]

    def end_texts(self) -> list[str]:
        """Texts at the end of lines in sight, from top to bottom."""
        return [text for _, text in sorted(self.page.evaluate(_END_TEXTS))]

    def toast(self, text: str) -> Any:
        """The notification with a text."""
        toast = self.page.locator(".notification-toast", has_text=text).first
        toast.wait_for(timeout=TIMEOUT_MS)
        return toast

    def until(self, question: Callable[[], Found], timeout_s: float = TIMEOUT_MS / 1000) -> Found:
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
            self.page.wait_for_timeout(100)
