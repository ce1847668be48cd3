"""Kernels of maps with one unknown threshold a row, one row at a time: `budget_rows`, `normmax_rows` and
`pnormmax_rows`, and their derivatives, `budget_backward` and so on.

budget finds a score next to its threshold by `ranking`. The others need the scores `near_peak` alone, and
for their derivatives a `norm`.
"""
