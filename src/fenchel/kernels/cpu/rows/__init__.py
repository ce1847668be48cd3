"""Kernels of entmax. `forward` leaves short rows to `batches`, and goes through the others one by one:
`softmax` is for alpha = 1. The Jacobian is `backward`, the derivative in alpha `alpha_slope`.
"""
