"""Compiled kernels for the CPU: the functions of the reference, with the same names and signatures."""
