"""The search for the normaliser of a row: `climbing` finds that of some columns, `steep` that for
alpha > 2 in unknowns of its own, and `normalizer` leaves as few columns as it can to these. Of what is
found `probabilities` are made.
"""
