"""The CPU kernels, in Numba. Nothing outside this package imports Numba.

Every map has one home. Its package, or for small maps its file, exports the functions that the
dispatcher calls, with the names and signatures of `kernels/reference`. A folder imports only from those
above it, and the last six not from each other:

    launch       memory, compilation, threads, and how these share the rows
    arithmetic   elementary functions and vectors of one number per row
    shared       columns in whole vectors, batches of short rows, and what two maps have in common
    solver       the normalizer of a row of entmax
    entmax       the map, one file for each way of solving rows
    entmax_loss  the loss and its gradients
    budget       top-k probabilities: a threshold by Newton's method in a bracket
    fusedmax     candidates, the prox of total variation, projection onto the simplex
    oscarmax     sort, pool groups, project onto the simplex
    paraboloid   integrals of Gaussians over the unit disk
    attention    one product of queries and keys, then a few keys for each query

The formulas are in `docs/numerics.md`. A good place to begin is `entmax/forward.py`.
"""
