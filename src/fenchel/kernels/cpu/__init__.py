"""The CPU kernels, in Numba; nothing outside this package imports Numba.

The files at the top are what the rest of the library calls, with the names and signatures of
`kernels/reference`: they choose a kernel and launch it. A folder imports from those above it alone, and
the last five not from each other:

    launch      what a kernel needs to run: memory, compilation, threads, and how these share rows
    arithmetic  one number at a time
    columns     some columns of a row
    search      the normaliser of a row
    batches     short rows of every map, 16 at a time
    rows        entmax
    losses      the entmax loss
    thresholds  budget, normmax and pnormmax
    structured  fusedmax, fusedmax2d and oscarmax
    disk        integrals over the unit disk

`entmax` is the place to begin, then `rows/forward` and what that imports.
"""
