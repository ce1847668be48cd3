"""Kernels of maps with one unknown threshold a row.

In float32: `rows` and `backward` are what `budget_rows` and `norm_rows` (normmax at alpha = 2) share.
In float64, one row a program: `row_programs` for `any_norm_rows` (normmax) and `squared_norm_rows`
(pnormmax).
"""
