"""Kernels of the entmax loss and of its derivatives."""
