"""Virtual time and the capture log in pure Python, for programs that do not use the PyTorch device.

What the C++ core does per ATen operation is needed here only per compiled computation (a jitted JAX
function, an NKI kernel), and must work where torch is not installed.
"""
