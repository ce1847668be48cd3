"""Kernels for CUDA devices, in Triton. Nothing outside this package imports Triton.

Every map has one home. Its package (for pnormmax, its file) exports the functions that the dispatcher
calls. A folder imports only from those above it, and the last five not from each other:

    launch              addresses, parameters, tile shapes, compilation and launches
    arithmetic          powers, and single entries of a row
    tiles               tiles of rows in registers: loads, stores, sums and maxima
    solver              the normalizer of a row of entmax
    shared              kernels and launches that two maps have in common
    entmax              the map, one file for each way of holding rows
    entmax_loss         the loss and its gradients, likewise
    linear_entmax_loss  the gradients of an output layer from lists of non-zero entries
    normmax             for alpha = 2, and for any other alpha in float64
    budget              top-k probabilities: a threshold by Newton's method in a bracket
    fusedmax            candidates, the prox of total variation, projection onto the simplex
    oscarmax            sort, pool groups, assign every entry to its group

The formulas are in `docs/numerics.md`. A good place to begin is `entmax/on_chip.py`.
"""
