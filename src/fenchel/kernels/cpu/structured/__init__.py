"""Kernels of the maps with groups, one row at a time.

fusedmax (`fusedmax_rows`): `total_variation` (`total_variation_directly` for as long as that is fast),
then `simplex_threshold`; `chains` are the rows and columns of an image. oscarmax (`oscarmax_rows`):
`sorting` and `pooling`, or `bucket_pooling` where entries are many. They go back by `fusedmax_backward`
and `oscarmax_backward`.
"""
