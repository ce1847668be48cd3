"""Integrals over the unit disk, one number at a time: where to look (`peak`), and the integral along a
chord (`window`). Files are named as in `kernels/reference`.
"""
