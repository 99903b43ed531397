"""`torch_neuronx.xla_impl.custom_call_targets`: markers of layers, which change no value."""

from neuron_tools.compat.absent import names_of

AwsNeuronModuleMarkerStartForward = "AwsNeuronModuleMarkerStart-Forward"
AwsNeuronModuleMarkerStartBackward = "AwsNeuronModuleMarkerStart-Backward"
AwsNeuronModuleMarkerEndForward = "AwsNeuronModuleMarkerEnd-Forward"
AwsNeuronModuleMarkerEndBackward = "AwsNeuronModuleMarkerEnd-Backward"
MARKERS = (
    AwsNeuronModuleMarkerStartForward,
    AwsNeuronModuleMarkerStartBackward,
    AwsNeuronModuleMarkerEndForward,
    AwsNeuronModuleMarkerEndBackward,
)
"""Where AWS's compiler may cut a graph into layers that it compiles once."""

__getattr__ = names_of(__name__, "operations that AWS's builder of HLO makes are not simulated.")
