"""Kernels of the entmax loss: the `targets` it takes, the `terms` it is a sum of, that sum (`forward`),
its gradient (`slopes`), and its derivative in alpha (`alpha_slope`).
"""
