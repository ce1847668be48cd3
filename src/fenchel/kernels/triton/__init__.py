"""The GPU kernels, in Triton; nothing outside this package imports Triton.

The files at the top are what the rest of the library calls, named as in `kernels/reference`: they
choose a kernel and launch it. `weight_gradient` and `scaling` serve the output layer. A folder imports
from those above it alone, and the last four not from each other:

    launch        what a launch needs: addresses, kinds of alpha, shapes of tiles, and the launch itself
    arithmetic    one number at a time
    tiles         a tile of rows in registers
    search        the normaliser of a row
    rows          entmax, by how rows are held
    losses        the entmax loss
    thresholds    budget, normmax and pnormmax
    structured    fusedmax and oscarmax
    output_layer  the gradients of an output layer

`entmax` is the place to begin, then `rows/on_chip` and what that imports.
"""
