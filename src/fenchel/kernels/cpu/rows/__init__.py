"""Kernels of entmax, one row at a time: `softmax` at alpha = 1, the Jacobian (`backward`), and the
derivative in alpha (`alpha_slope`).
"""
