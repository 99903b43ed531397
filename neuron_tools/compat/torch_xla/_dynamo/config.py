"""`torch_xla._dynamo.config`: accepted for compatibility."""

skip_input_data_check = False
"""No effect: what was recorded before a graph runs before it, arguments or not."""
