"""`torch_xla.test`."""
