"""Kernels measured and searched in simulated time: `evaluate`, and what `neuron-profile tune` is made of."""

from neuron_profile.tune.evaluate import Evaluator, evaluate
from neuron_profile.tune.measurement import Candidate, Measurement

__all__ = ["Candidate", "Evaluator", "Measurement", "evaluate"]
