"""Every exporter tells a caller the arguments that all share, behind what is its own."""

import pytest

from neuron_tools.profile import export


@pytest.mark.parametrize("function", [export.export_perfetto, export.export_csv, export.export_parquet])
def test_what_an_exporter_does_and_takes_is_in_its_help(function) -> None:
    first, *rest = function.__doc__.splitlines()
    assert first.startswith("Writes")
    assert {"Args:", "Returns:", "Raises:"} <= set(rest)
