"""One eager ATen operator, or several that wait together, as the device saw them, to an `hlo.Module`."""
