"""One number at a time: logarithms and powers in float32 (`elementary`, `powers`), and what a score and
a normaliser make of an entry of a row: `entries`, and `fine_powers` where many of them are added up.
"""
