"""`neuronxcc.driver`: the compiler's command, which libraries name when they are imported."""
