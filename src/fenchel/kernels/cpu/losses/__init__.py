"""Kernels of the entmax loss: the `targets` it takes, the `terms` it is a sum of, its gradient
(`slopes`), and its derivative in alpha (`alpha_slope`).
"""
