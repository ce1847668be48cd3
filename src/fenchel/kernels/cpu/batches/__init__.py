"""Short rows, 16 at a time, of every map that solves them so. `batch` is what they share.

`entmax` is for 1 < alpha <= 2: `guesses` and `steps` from there. `steep` is entmax for alpha > 2, which
lists scores and finds the support among them (`steep_support`). `normmax` and `budget` are in float64.
"""
