"""Some columns of a row: in multiples of a vector (`whole_vectors`), the `largest` of them, and a
`selection` of those that matter.
"""
