"""Kernels of entmax, one file for every way in which rows are held, and of its Jacobian (`backward`).

In registers: `on_chip`, and from there `small_support` and `each_row` (with an alpha of its own, in
`row_order`); `half_rows` packed. Too long for that: `long_rows` by their `groups`, `streamed_rows` in
one kernel, `near_rows` next to alpha = 1. `softmax` takes both.
"""
