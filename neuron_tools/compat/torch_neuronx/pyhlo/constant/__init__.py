"""`torch_neuronx.pyhlo.constant`: constants of HLO files of AWS's compiler; nothing of it is there."""
