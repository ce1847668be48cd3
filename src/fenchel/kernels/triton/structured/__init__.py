"""Kernels of the maps with groups: fusedmax and oscarmax."""
