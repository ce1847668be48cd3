"""Kernels of the maps with groups, one row at a time.

fusedmax: `total_variation` (`total_variation_directly` for as long as that is fast), then
`simplex_threshold`; `fusedmax_backward`. oscarmax: `sorting` and `pooling`, or `bucket_pooling` where
entries are many; `oscarmax_backward`.
"""
