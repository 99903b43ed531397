"""Errors of the monitor whose text is meant for the user."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError, UsageError


class ConfigurationError(UsageError):
    """A configuration file says something that the monitor cannot do."""


class NoDevicesError(NeuronToolsError):
    """There is no tree of Neuron devices where one was asked for."""


class ListenError(NeuronToolsError):
    """A port cannot be listened on."""


class PrometheusQueryError(NeuronToolsError):
    """A Prometheus server did not answer a query."""
