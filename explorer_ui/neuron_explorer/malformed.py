"""Requests that no page of ours sends, refused with a status and a sentence in place of an internal error."""

from __future__ import annotations

import logging
from typing import Any

from dash import Dash
from dash.exceptions import DependencyException
from flask import Response, request
from werkzeug.exceptions import HTTPException

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
            return _refusal(str(error), 400)
        if isinstance(error, _MALFORMED):
            return _refusal("The request is malformed.", 400)
        logging.getLogger(__name__).error("A request failed: %s", request.path, exc_info=error)
        return _refusal(f"The request failed ({type(error).__name__}).", 500)

    server.before_request(check)
    server.register_error_handler(Exception, fault)


def _check_callback(app: Dash) -> Response | None:
    """Refuse the call of a callback that there is none of."""
    body = request.get_json(silent=True)
    output = body.get("output") if isinstance(body, dict) else None
    if not isinstance(output, str) or not isinstance(body.get("inputs", []), list):
        return _refusal("The request is malformed.", 400)
    known = app.callback_map
    return None if output in known else _refusal("There is no such callback.", 404)


def _refusal(sentence: str, status: int) -> Response:
    return Response(f"{sentence}\n", status=status, mimetype="text/plain")
