"""The device `xla`, and a provider that lowers each graph it is asked for."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends import executables, torch_xla


class Provider:
    """Makes each module once; an executable's number is its order."""

    def __init__(self, lowers=True):
        self.modules = {}
        self._lowers = lowers
        self.executions = []

    def executable_for(self, module_factory, key, name):
        if key not in self.modules:
            self.modules[key] = module_factory() if self._lowers else name
        number = list(self.modules).index(key) + 1
        self.executions.append(number)
        return number, 1000

    @property
    def last(self):
        return list(self.modules.values())[self.executions[-1] - 1]


@pytest.fixture
def xla():
    torch_xla.register()
    torch_xla.sync()
    torch_xla.METRICS.clear()
    yield torch.device("xla", 0)
    torch_xla.sync()


@pytest.fixture
def provider(xla):
    yield from installed(Provider())


@pytest.fixture
def counter(xla):
    """A provider that lowers nothing: for what is compiled, and how often."""
    yield from installed(Provider(lowers=False))


def installed(provider):
    remove = executables.install(provider)
    yield provider
    remove()
