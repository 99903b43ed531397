"""The list of profiles: where they are, how they ended, tags, import and deletion."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from time import time_ns
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update

from neuron_explorer.imports import add_path
from neuron_explorer.library import ProfileEntry, is_profile
from neuron_explorer.page import Page, Site, View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.quantities import Cell, CellLink, bytes_cell, count_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.parts.task_list import task_list
from neuron_explorer.parts.ticks import one_question_at_a_time
from neuron_explorer.tasks import Task
from neuron_profile.analysis.identity import command_text
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store import layout as folder_layout

SPAN_TABLES = ("Instruction", "DmaPacketAggregated", "DmaPacket", "HloInstruction", "FrameworkInstruction",
               "HostSpan", "TraceSpan", "SystemProfileEvents", "CcOp")  # fmt: skip
PARTS = frozenset({folder_layout.MANIFEST_NAME, "catalog.json", "timeline", "programs", "log"})
"""What a profile's folder has besides its tables."""
HEADINGS = ("Name", "Status", "Tags", "Target", "Command", "Changed", "Spans", "Size", "")
ROWS = 150
TICK_MS = 700


def layout(view: View) -> list[Any]:
    """Components of the page; `edit` and `delete` in the address ask about one profile."""
    entries = view.library.entries()
    return [
        *_question(view, entries),
        html.Div(_list(view), id="profile-list", className="section"),
        *([] if view.sharing.is_read_only else [_import_card(view)]),
    ]


def _list(view: View) -> Any:
    entries = view.library.entries()
    if not entries:
        return empty_state(
            "There are no profiles yet.",
            "Capture one with: neuron-profile capture -- python train.py",
            "Or drop a trace below: torch.profiler, JAX, Perfetto, Chrome, or what AWS's profiler wrote.",
        )
    wanted = view.address.get("tag")
    chosen = [entry for entry in entries if not wanted or wanted in view.store.tags(entry.id)]
    rows = [_row(view, entry) for entry in chosen[:ROWS]]
    notes = [f"{len(chosen) - ROWS:,} further profiles are not listed."] if len(chosen) > ROWS else []
    if wanted:
        notes.append(f"Only profiles with the tag “{wanted}”.")
    everything = [html.A("Show all", href=f"{view.address.root}/", className="button")] if wanted else []
    return [*everything, table_card("Profiles", HEADINGS, rows, explains=" ".join(notes))]


def _row(view: View, entry: ProfileEntry) -> list[Any]:
    manifest = _manifest(entry)
    tables: Mapping[str, Any] = manifest.get("tables") or {}
    facts = [fact for fact in tables.values() if isinstance(fact, Mapping)]
    spans = sum(int((tables.get(name) or {}).get("rows", 0)) for name in SPAN_TABLES)
    size = sum(int(fact.get("bytes", 0)) for fact in facts)
    here, to = entry.id, view.address.to
    opens = to("/timeline", profile=here)
    timeline = CellLink("Timeline", opens, "button quiet", f"Timeline of {entry.name}")
    changes = (
        CellLink("Tags", to("/", edit=here), "button quiet", f"Tags of {entry.name}"),
        CellLink("Delete", to("/", delete=here), "button quiet danger", f"Delete {entry.name}"),
    )
    tags = tuple(
        CellLink(tag, to("/", tag=tag), "tag", f"Only profiles with the tag {tag}")
        for tag in view.store.tags(here)
    )
    command = command_text(manifest.get("command") or "")
    return [
        Cell(entry.name, href=to("/workspace", profile=here), title=entry.location, style="name"),
        replace(_status(manifest), title=f"Made by {manifest.get('producer', 'another tool')}"),
        Cell("", " ".join(link.text for link in tags), links=tags),
        str(manifest.get("target", "")),
        Cell(command[:80], command, title=command, is_code=True),
        _changed(entry),
        count_cell(spans or None),
        bytes_cell(size or None),
        Cell("", "", links=(timeline, *(() if view.sharing.is_read_only else changes))),
    ]


def _manifest(entry: ProfileEntry) -> Mapping[str, Any]:
    """What `profile.json` says; empty where there is none."""
    try:
        content = json.loads(Path(entry.location, folder_layout.MANIFEST_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _status(manifest: Mapping[str, Any]) -> Cell:
    if not manifest:
        return Cell("tables only", style="tag")
    if manifest.get("complete"):
        return Cell("complete", style="tag good")
    return Cell("interrupted" if manifest.get("interrupted") else "incomplete", style="tag bad")


def _changed(entry: ProfileEntry) -> Cell:
    path = Path(entry.location)
    try:
        seconds = (path / folder_layout.MANIFEST_NAME if is_profile(path) else path).stat().st_mtime
    except OSError:
        return Cell("")
    when = datetime.fromtimestamp(seconds, timezone.utc).astimezone()
    return Cell(f"{when:%Y-%m-%d %H:%M}", round(seconds), style="name")


def _import_card(view: View) -> Any:
    drop = html.Div(
        [
            "Drop traces here, or ",
            html.Button("choose files", className="button", **{"data-action": "upload"}),
            html.Span(id="upload-state", role="status"),
        ],
        className="drop",
        id="drop",
    )
    path = html.Div(
        [
            html.Label("Or a path on this machine", htmlFor="import-path"),
            dcc.Input(
                id="import-path", type="text", placeholder="/runs/trace.json.gz", style={"minWidth": "320px"}
            ),
            html.Button("Add", id="import-button", className="button primary"),
            html.Span(id="import-answer", role="status"),
        ],
        className="bar",
    )
    paths = [html.Div(path, hidden=view.sharing.has_users)]
    return card(
        "Add profiles and traces",
        [
            html.Div([drop, *paths, html.Div(_tasks(view), id="import-tasks")], className="stack"),
            dcc.Interval(id="import-tick", interval=TICK_MS, disabled=not is_running(view, "import")),
        ],
        explains=(
            "Profiles, folders of them, and traces of torch.profiler, JAX, Perfetto, Chrome, monitors or "
            "AWS's neuron-profile. The content tells the format."
        ),
    )


def _question(view: View, entries: tuple[ProfileEntry, ...]) -> list[Any]:
    by_id = {entry.id: entry for entry in entries}
    edited, deleted = by_id.get(view.address.get("edit")), by_id.get(view.address.get("delete"))
    keep = html.A("Cancel", href=f"{view.address.root}/", className="button")
    if deleted is not None:
        sentence = f"Delete {deleted.location} from the disk? This cannot be undone."
        button = html.Button("Delete", id="delete-button", className="button danger")
        held = dcc.Store(id="deleted-profile", data=deleted.id)
        body = [html.P(sentence), html.Div([button, keep, html.Span(id="delete-answer", role="alert")],
                                           className="bar"), held]  # fmt: skip
        return [card(f"Delete {deleted.name}", html.Div(body, className="stack"))]
    if edited is not None:
        tags = ", ".join(view.store.tags(edited.id))
        field = html.Div(
            [
                html.Label("Tags, separated by commas", htmlFor="tag-field"),
                dcc.Input(id="tag-field", type="text", value=tags, style={"minWidth": "280px"}),
                html.Button("Save", id="tag-button", className="button primary"),
                keep,
                html.Span(id="tag-answer", role="alert"),
            ],
            className="bar",
        )
        return [card(f"Tags of {edited.name}", [field, dcc.Store(id="edited-profile", data=edited.id)])]
    return []


def register(app: Dash, site: Site) -> None:
    """Import, tag and delete."""

    @app.callback(
        Output("import-answer", "children"),
        Input("import-button", "n_clicks"),
        Input("import-path", "n_submit"),
        State("import-path", "value"),
        prevent_initial_call=True,
    )
    def add(clicks: int | None, submits: int | None, path: str | None) -> Any:
        if not (clicks or submits):
            return no_update
        try:
            return add_path(site, path or "")
        except NeuronToolsError as error:
            return str(error)

    @app.callback(
        Output("import-tasks", "children"),
        Output("profile-list", "children"),
        Output("import-tick", "disabled"),
        Input("import-tick", "n_intervals"),
        Input("import-answer", "children"),
        Input({"type": "cancel-import", "task": ALL}, "n_clicks"),
        State("address", "pathname"),
        State("address", "search"),
        prevent_initial_call=True,
        running=one_question_at_a_time("import-tick"),
    )
    def follow(
        ticks: int | None, answer: str | None, clicks: list[int | None], pathname: str, search: str
    ) -> Any:
        cancel_clicked(site, "cancel-import")
        view = site.view(pathname, search)
        waits = is_running(view, "import")
        return _tasks(view), no_update if waits else _list(view), not waits

    @app.callback(
        Output("tag-answer", "children"),
        Output("go-to", "data", allow_duplicate=True),
        Input("tag-button", "n_clicks"),
        Input("tag-field", "n_submit"),
        State("tag-field", "value"),
        State("edited-profile", "data"),
        prevent_initial_call=True,
    )
    def save_tags(clicks: int | None, submits: int | None, text: str | None, profile_id: str) -> Any:
        if not (clicks or submits):
            return no_update, no_update
        try:
            site.library.entry(profile_id)
            site.store.set_tags(profile_id, (text or "").split(","))
        except NeuronToolsError as error:
            return str(error), no_update
        return "", {"href": f"{site.root}/", "after": time_ns()}

    @app.callback(
        Output("delete-answer", "children"),
        Output("go-to", "data", allow_duplicate=True),
        Input("delete-button", "n_clicks"),
        State("deleted-profile", "data"),
        prevent_initial_call=True,
    )
    def delete(clicks: int | None, profile_id: str) -> Any:
        if not clicks:
            return no_update, no_update
        try:
            _delete(site, profile_id)
        except (NeuronToolsError, OSError) as error:
            return str(error), no_update
        return "", {"href": f"{site.root}/", "after": time_ns()}


def _tasks(view: View) -> Any:
    tasks = view.tasks.all("import")
    return task_list(tasks, "cancel-import", lambda task: _open_link(view, task)) if tasks else []


def is_running(view: View, kind: str) -> bool:
    """Whether a task of a kind goes on."""
    return any(task.state == "running" for task in view.tasks.all(kind))


def cancel_clicked(site: Site, button: str) -> None:
    """Cancel the task whose button was clicked, if one was."""
    clicked = ctx.triggered_id
    if isinstance(clicked, Mapping) and clicked.get("type") == button and ctx.triggered[0]["value"]:
        task = site.tasks.get(str(clicked["task"]))
        if task is not None:
            task.job.progress.cancel()


def _open_link(view: View, task: Task) -> Any:
    return html.A("Open", href=view.address.to("/workspace", profile=task.job.result), className="button")


def _delete(site: Site, profile_id: str) -> None:
    """Remove a profile of the library from the disk; a folder that is not one is never removed.

    Raises:
        NeuronToolsError: It is not in the library, or no longer a profile.
        OSError: It cannot be removed.
    """
    entry = site.library.entry(profile_id)
    path = Path(entry.location)
    site.sharing.require_own(path, site.store)
    if not is_profile(path) or path.is_symlink():
        raise NeuronToolsError(f"{path} is not a profile on this machine: remove it by hand.")
    site.analyses.forget(profile_id)
    site.library.drop(profile_id)
    _remove(path)


def _remove(path: Path) -> None:
    """Remove what belongs to a profile, and its folder unless something else stands there too."""
    for child in sorted(path.iterdir()):
        if child.name not in PARTS and child.name.removesuffix(folder_layout.PART_SUFFIX) not in TABLES:
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()
    if not any(path.iterdir()):
        path.rmdir()


PAGE = Page("/", "Profiles", layout, register, needs_profile=False)
