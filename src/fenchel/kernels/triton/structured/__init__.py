"""Kernels of the maps with groups, in the order in which they run.

fusedmax: `candidates`, `total_variation` (`total_variation_by_knots` for rows that it gives up),
`expansion`. oscarmax: `sorting`, `pooling`, `clusters`. Both go back by `grouped_backward`.
"""
