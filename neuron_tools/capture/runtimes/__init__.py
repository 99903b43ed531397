"""What a capture session records: one runtime per way in which a program reaches the device."""

from neuron_tools.capture.runtimes.runtime import Recording, Runtime

__all__ = ["Recording", "Runtime"]
