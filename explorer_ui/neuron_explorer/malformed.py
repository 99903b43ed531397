"""Requests that no page of ours sends, refused with a status and a sentence in place of an internal error."""

from __future__ import annotations

import logging
from typing import Any

from dash import Dash
from dash.exceptions import CallbackException, DependencyException
from flask import Response, request
from werkzeug.exceptions import HTTPException

from neuron_explorer.sharing import NotSharedError
from neuron_tools.errors import NeuronToolsError

CALLBACKS = "/_dash-update-component"
MOST_JSON_BYTES = 16 << 20
_MALFORMED = (RecursionError, UnicodeError)


def refuse_malformed(app: Dash) -> None:
    """Answer malformed requests to an application with 400 or 404, and faults of ours with one sentence."""
    server: Any = app.server

    def check() -> Response | None:
        if request.is_json and (request.content_length or 0) > MOST_JSON_BYTES:
            return _refusal("The request is too large.", 413)
        if request.path == CALLBACKS and request.method == "POST":
            return _check_callback(app)
        return None

    def fault(error: Exception) -> Response | HTTPException:
        if isinstance(error, HTTPException):
            return error
        if isinstance(error, DependencyException):
            return _refusal("There is no such file.", 404)
        if isinstance(error, NeuronToolsError):
            return _refusal(str(error), 403 if isinstance(error, NotSharedError) else 400)
        if isinstance(error, _MALFORMED) or type(error) is CallbackException:
            return _refusal("The request is malformed.", 400)
        logging.getLogger(__name__).error("A request failed: %s", request.path, exc_info=error)
        return _refusal(f"The request failed ({type(error).__name__}).", 500)

    server.before_request(check)
    server.register_error_handler(Exception, fault)


def _check_callback(app: Dash) -> Response | None:
    """Refuse the call of a callback that there is none of, or with parts that are none."""
    body = request.get_json(silent=True)
    if not isinstance(body, dict) or not isinstance(body.get("output"), str) or not _has_parts(body):
        return _refusal("The request is malformed.", 400)
    is_known = "callback" in app.callback_map.get(body["output"], {})
    return None if is_known else _refusal("There is no such callback.", 404)


def _has_parts(body: dict[str, Any]) -> bool:
    """Whether a callback's outputs, inputs, states and changes are such as Dash's own page sends."""
    changed = body.get("changedPropIds", [])
    parts = [part for name in ("outputs", "inputs", "state") for part in _flat(body.get(name) or [])]
    has_names = isinstance(changed, list) and all(isinstance(each, str) for each in changed)
    return has_names and all(map(_is_part, parts))


def _is_part(part: Any) -> bool:
    is_named = isinstance(part, dict) and isinstance(part.get("property"), str)
    return is_named and isinstance(part.get("id"), (str, dict))


def _flat(parts: Any) -> list[Any]:
    """The parts of a request; those of a pattern stand in a list of their own."""
    if not isinstance(parts, list):
        return [parts]
    return [each for part in parts for each in (part if isinstance(part, list) else [part])]


def _refusal(sentence: str, status: int) -> Response:
    return Response(f"{sentence}\n", status=status, mimetype="text/plain")
