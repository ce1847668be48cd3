"""Kernels of maps with one unknown threshold a row, one row at a time.

budget: `ranking` finds a score next to the threshold; `budget_backward`. normmax and pnormmax: both need
the scores `near_peak` alone, and their derivatives (`normmax_backward`, `pnormmax_backward`) a `norm`.
"""
