"""Kernels and launches that two maps share."""
