"""Kernels for the gradients of an output layer, from gradients of scores that are mostly zero."""
