"""Elementwise device functions: logarithms, powers and the entries of a row."""
