"""Export: the profile in another format, with progress, and a way to cancel."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html

from neuron_explorer.jobs import Progress
from neuron_explorer.page import Page, Site, View
from neuron_explorer.pages.profiles import cancel_clicked, is_running
from neuron_explorer.parts.card import card, file_name
from neuron_explorer.parts.task_list import task_list
from neuron_explorer.parts.ticks import one_question_at_a_time
from neuron_explorer.tasks import Task, told
from neuron_tools.profile.export.formats import FORMATS, ExportFormat
from neuron_tools.profile.reader import Profile

TICK_MS = 500


def layout(view: View) -> list[Any]:
    """Components of the page."""
    buttons = [
        html.Li(
            [
                html.Button(entry.title, id={"type": "export", "format": name}, className="button primary"),
                html.Span(entry.says, className="faint"),
            ]
        )
        for name, entry in FORMATS.load_all()
    ]
    return [
        card("Export as", html.Ul(buttons, className="plain formats")),
        card(
            "Exports of this run",
            [html.Div(_list(view), id="export-tasks"), _tick(view)],
            explains="Files are kept until the Explorer is stopped.",
        ),
    ]


def _tick(view: View) -> Any:
    return dcc.Interval(id="export-tick", interval=TICK_MS, disabled=not is_running(view, "export"))


def _list(view: View) -> Any:
    tasks = view.tasks.all("export")
    if not tasks:
        return html.P("None yet.", className="faint")
    return task_list(tasks, "cancel-export", lambda task: _save_link(view, task))


def _save_link(view: View, task: Task) -> Any:
    return html.A(
        "Save", href=f"{view.address.root}/download/export/{task.id}", className="button", download=""
    )


def start_export(site: Site, profile: Profile, name: str) -> Task:
    """Write a profile in another format in the background; the result is the path of the file."""
    entry: ExportFormat = FORMATS.load(name)
    stem = file_name(profile.path.stem)

    def run(progress: Progress) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="neuron-explorer-export-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        target = folder / f"{stem}{entry.suffix}"
        entry.export(profile, target, progress=told(progress, f"Writing {target.name}"))
        progress.check()
        if not entry.is_folder:
            return target
        packed = Path(shutil.make_archive(str(target), "zip", target))
        shutil.rmtree(target)
        return packed

    return site.tasks.start("export", f"{stem}{entry.suffix}", run)


def register(app: Dash, site: Site) -> None:
    """Begin, follow and cancel exports."""

    @app.callback(
        Output("export-tasks", "children"),
        Output("export-tick", "disabled"),
        Input("export-tick", "n_intervals"),
        Input({"type": "export", "format": ALL}, "n_clicks"),
        Input({"type": "cancel-export", "task": ALL}, "n_clicks"),
        State("address", "pathname"),
        State("address", "search"),
        prevent_initial_call=True,
        running=one_question_at_a_time("export-tick"),
    )
    def follow(ticks: int | None, starts: Any, cancels: Any, pathname: str, search: str) -> Any:
        view = site.view(pathname, search)
        clicked = ctx.triggered_id
        if isinstance(clicked, dict) and clicked.get("type") == "export" and ctx.triggered[0]["value"]:
            start_export(site, view.profile, str(clicked["format"]))
        cancel_clicked(site, "cancel-export")
        return _list(view), not is_running(view, "export")


PAGE = Page("/export", "Export", layout, register, group="What to do", follows_range=False)
