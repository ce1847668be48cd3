"""Kernels of the maps that have one unknown threshold a row: budget, normmax and pnormmax."""
