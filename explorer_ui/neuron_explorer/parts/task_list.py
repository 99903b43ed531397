"""Imports and exports as a list with their progress, and a button that cancels each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dash import html

from neuron_explorer.tasks import Task


def task_list(tasks: Sequence[Task], button: str, result: Callable[[Task], Any]) -> Any:
    """The list.

    Args:
        button: Type of the buttons' ids, `{"type": button, "task": id}`.
        result: What to offer of a task that is done.
    """
    return html.Ul([html.Li(_task(task, button, result)) for task in tasks], className="plain tasks")


def _task(task: Task, button: str, result: Callable[[Task], Any]) -> Any:
    running = task.state == "running"
    cancel = html.Button(
        "Cancel", id={"type": button, "task": task.id}, className="button", hidden=not running
    )
    offered = result(task) if task.state == "done" else ""
    return html.Div([html.Strong(task.title), _state(task), cancel, offered], className="bar")


def _state(task: Task) -> Any:
    progress = task.job.progress
    if task.state == "running":
        known = {} if progress.fraction is None else {"value": f"{progress.fraction:.3f}", "max": "1"}
        return html.Progress(**known, **{"aria-label": f"Progress of {task.title}"})
    if task.state == "failed":
        return html.Span(str(task.job.error), className="slower", role="alert")
    return html.Span(task.state, className="faint")
