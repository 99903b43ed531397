"""The Textual application: places the panels, follows keys and mouse, and takes a view a second."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static, Tab, Tabs, Tree
from textual.widgets.tree import TreeNode

from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.view import ProcessView, View, Windows
from neuron_monitor.top import panels
from neuron_monitor.top.bars import ASCII, UNICODE
from neuron_monitor.top.dialogs import ConfirmScreen, HelpScreen
from neuron_monitor.top.memory_tree import memory_branches
from neuron_tools.version import installed_version

HISTORY = 60
COLUMNS = ("PID", "TAG", "CORES", "UTIL", "FLOP/S", "DEV MEM", "P99", "CPU", "COMMAND")
# What the processes can be ordered by; the first is the order at the start.
ORDERS: dict[str, Callable[[ProcessView], object]] = {
    "PID": lambda view: view.process.pid,
    "UTIL": lambda view: -panels.mean_rate(view),
    "DEV MEM": lambda view: -panels.device_bytes(view.process),
    "CPU": lambda view: -(view.user_share + view.system_share),
    "TAG": lambda view: view.process.tag,
}
ALL_TAB = "all"


class TopApp(App[None]):
    """`neuron-top`.

    Args:
        sampler: What reads the devices and the host.
        period_s: Seconds between views.
        ascii_only: Whether to draw with ASCII only.
    """

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    # In few lines, devices and processes get less room each and are scrolled.
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-short"), (34, "-tall")]  # noqa: RUF012  # as textual declares it
    BINDINGS: ClassVar = [
        Binding("q", "quit", "Quit"),
        Binding("f", "flops", "FLOPS"),
        Binding("x", "expand", "Expand all"),
        Binding("s", "order", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("k", "kill", "Kill"),
        Binding("space", "pause", "Pause", show=False),
        Binding("a", "tab(-1)", "Prev", show=False),
        Binding("d", "tab(1)", "Next", show=False),
        Binding("question_mark", "help", "Help"),
        *[Binding(str(number), f"choose({number})", show=False) for number in range(1, 10)],
    ]

    def __init__(self, sampler: Sampler, period_s: float = 1.0, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._sampler = sampler
        self._period_s = period_s
        self._glyphs = ASCII if ascii_only else UNICODE
        self._windows = Windows(sampler.sample())
        self._view: View | None = None
        self._pid: int | None = None
        self._as_flops = False
        self._is_paused = False
        self._order = next(iter(ORDERS))
        self._filter = ""
        self._utilization: deque[float] = deque(maxlen=HISTORY)
        self._bandwidth: deque[float] = deque(maxlen=HISTORY)
        self._branches: dict[tuple[str, ...], TreeNode[None]] = {}

    def compose(self) -> ComposeResult:
        """All parts, empty."""
        yield Static(id="title", markup=False)
        yield Static(id="core-heading")
        yield VerticalScroll(Static(id="cores"), id="core-box")
        yield Static(id="processors")
        yield Static(id="memory")
        yield Static(id="activity")
        yield Tabs(Tab("all", id=_tab_id(None)), id="tabs")
        yield Input(placeholder="text in tag, command or pid; enter closes", id="filter")
        yield DataTable(id="processes", cursor_type="row", zebra_stripes=True)
        tree: Tree[None] = Tree("Memory", id="tree")
        tree.show_root = False
        yield tree
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin."""
        table = self.query_one("#processes", DataTable)
        for name in COLUMNS:
            table.add_column(name, key=name)
        self.query_one("#filter", Input).display = False
        table.focus()
        self.refresh_view()
        self.set_interval(self._period_s, self.refresh_view)

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._show()

    def refresh_view(self) -> None:
        """Take a view and show it."""
        if self._is_paused:
            return
        self._view = self._windows.advance(self._sampler.sample())
        choice = self._choice()
        self._utilization.append(panels.mean_utilization(self._view, choice))
        self._bandwidth.append(panels.hbm_bytes_per_second(self._view, choice))
        self._follow_tabs(self._view)
        self._show()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Show the chosen process, or all."""
        chosen = (event.tab.id or "").removeprefix("tab-") if event.tab else ALL_TAB
        self._pid = int(chosen) if chosen.isdigit() else None
        self._utilization.clear()
        self._bandwidth.clear()
        self._show()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Order by a column whose heading was clicked."""
        name = str(event.column_key.value)
        if name in ORDERS:
            self._order = name
            self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        self._filter = event.value.lower()
        self._show()

    def on_input_submitted(self) -> None:
        """Leave the filter's line; the filter stays."""
        self.query_one("#filter", Input).display = bool(self._filter)
        self.query_one("#processes", DataTable).focus()

    def action_flops(self) -> None:
        """Change between percent and FLOP/s."""
        self._as_flops = not self._as_flops
        self._show()

    def action_pause(self) -> None:
        """Stand still, or go on."""
        self._is_paused = not self._is_paused
        self._show()

    def action_expand(self) -> None:
        """Expand the whole tree, or collapse it where it is expanded."""
        root = self.query_one("#tree", Tree).root
        expand = any(not node.is_expanded for node in root.children)
        for node in root.children:
            if expand:
                node.expand_all()
            else:
                node.collapse_all()

    def action_order(self) -> None:
        """Order the processes by the next of the orders."""
        names = list(ORDERS)
        self._order = names[(names.index(self._order) + 1) % len(names)]
        self._show()

    def action_filter(self) -> None:
        """Open the filter's line."""
        line = self.query_one("#filter", Input)
        line.display = True
        line.focus()

    def action_tab(self, step: int) -> None:
        """Go to the next tab, or the one before."""
        tabs = self.query_one("#tabs", Tabs)
        if step > 0:
            tabs.action_next_tab()
        else:
            tabs.action_previous_tab()

    def action_choose(self, number: int) -> None:
        """Go to a tab by its number."""
        tabs = list(self.query_one("#tabs", Tabs).query(Tab))
        if number <= len(tabs):
            self.query_one("#tabs", Tabs).active = tabs[number - 1].id or ""

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())

    def action_kill(self) -> None:
        """Ask, then end the chosen process."""
        pid = self._chosen_pid()
        if pid is None:
            return
        self.push_screen(
            ConfirmScreen(f"End process {pid} (SIGTERM)?"), lambda yes: self._end(pid, bool(yes))
        )

    def _end(self, pid: int, is_confirmed: bool) -> None:
        if not is_confirmed:
            return
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError as error:
            self.notify(f"{pid}: {(error.strerror or 'cannot be ended').lower()}", severity="error")

    def _chosen_pid(self) -> int | None:
        table = self.query_one("#processes", DataTable)
        if table.row_count == 0:
            return self._pid
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return int(key) if key else self._pid

    def _choice(self) -> panels.Choice:
        return panels.Choice(self._pid, self._as_flops, self._glyphs)

    def _follow_tabs(self, view: View) -> None:
        """One tab a process, beside the one of all."""
        tabs = self.query_one("#tabs", Tabs)
        wanted = {_tab_id(each.process.pid): each.process.pid for each in view.processes}
        present = {tab.id for tab in tabs.query(Tab)}
        for identity in present - set(wanted) - {_tab_id(None)}:
            tabs.remove_tab(identity or "")
        for identity, pid in wanted.items():
            if identity not in present:
                tabs.add_tab(Tab(str(pid), id=identity))

    def _show(self) -> None:
        view = self._view
        if view is None or not self.is_running or not self.query("#title"):
            return
        width, choice = self.size.width - 2, self._choice()
        paused = "  [paused]" if self._is_paused else ""
        faults = f"  {len(view.sample.tree.faults)} nodes unreadable" if view.sample.tree.faults else ""
        self.query_one("#title", Static).update(panels.title(view, installed_version()) + paused + faults)
        self.query_one("#core-heading", Static).update(panels.core_heading(view, choice))
        self.query_one("#cores", Static).update(panels.core_grid(view, choice, width))
        self.query_one("#processors", Static).update(panels.processor_lines(view, choice, width))
        self.query_one("#memory", Static).update(panels.memory_lines(view, choice, width))
        self.query_one("#activity", Static).update(
            panels.activity_lines(view, choice, list(self._utilization), list(self._bandwidth), width)
        )
        self._show_processes(view, choice)
        self._show_tree(view, choice)

    def _show_processes(self, view: View, choice: panels.Choice) -> None:
        table = self.query_one("#processes", DataTable)
        shown = [each for each in panels.chosen_processes(view, choice) if self._passes(each)]
        rows = [panels.process_row(each) for each in sorted(shown, key=ORDERS[self._order])]  # type: ignore[arg-type]  # rows of one order have keys of one type
        keys = [str(row.value) for row in table.rows]
        if keys == [row[0] for row in rows]:
            for row in rows:
                for name, text in zip(COLUMNS, row):
                    table.update_cell(row[0], name, text, update_width=True)
            return
        position = table.cursor_row
        table.clear()
        for row in rows:
            table.add_row(*row, key=row[0])
        table.move_cursor(row=min(position, max(0, len(rows) - 1)))

    def _passes(self, view: ProcessView) -> bool:
        process = view.process
        return self._filter in f"{process.pid} {process.tag} {process.command}".lower()

    def _show_tree(self, view: View, choice: panels.Choice) -> None:
        """Change the tree in place, so that what the user expanded stays so."""
        tree = self.query_one("#tree", Tree)
        devices = view.sample.tree.devices
        cores = devices[0].facts.core_count if devices else 1
        processes = [each.process for each in panels.chosen_processes(view, choice)]
        branches = {branch.path: branch for branch in memory_branches(processes, cores)}
        for path in sorted(self._branches.keys() - branches.keys(), key=len, reverse=True):
            self._branches.pop(path).remove()
        for path, branch in branches.items():
            if path in self._branches:
                self._branches[path].set_label(branch.text())
                continue
            parent = self._branches.get(path[:-1], tree.root)
            is_leaf = len(path) == 3
            self._branches[path] = parent.add_leaf(branch.text()) if is_leaf else parent.add(branch.text())


def _tab_id(pid: int | None) -> str:
    return f"tab-{ALL_TAB if pid is None else pid}"
