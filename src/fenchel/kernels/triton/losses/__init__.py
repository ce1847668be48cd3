"""Kernels of the entmax loss. `class_loss` says what it is; `forward` which kernel finds it.

`on_chip`, `long_rows`, `streamed_rows`, `near_rows` and `softmax` hold rows as their namesakes in
`rows` do. The others need no search, for the normaliser is `kept`: `soft_targets`, and the derivatives
`slopes` and `alpha_slope`.
"""
