"""The simulated driver: publishes what a process does on the device, as the Neuron driver's sysfs tree does.

docs/simulated-driver.md lists the nodes. What readers need is here, and imports neither PyTorch nor NumPy.
"""

from neuron_tools.device.driver.departure import sweep
from neuron_tools.device.driver.root import root_folder

__all__ = ["root_folder", "sweep"]
