"""Kernels of entmax, one file for every way in which rows are held, and of its Jacobian."""
