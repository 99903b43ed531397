"""`torch_xla.experimental`."""
