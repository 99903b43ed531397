"""The older dialect (`neuronxcc.nki`): results instead of destinations, masks, index expressions."""
