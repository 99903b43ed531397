"""What published kernels use of the older package's private part."""
