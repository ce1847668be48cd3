"""The search for the normaliser of a row, whatever holds it: a first guess (`edge_guess`,
`softmax_guess`), `steps` from there, and a climb that ends (`climbing`).

`smooth` is made of these for alpha up to 1.45, `normalizer` up to 2; `steep` finds the support for
larger ones in unknowns of its own.
"""
