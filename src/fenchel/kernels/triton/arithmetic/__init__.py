"""One number at a time: logarithms and powers in float32, and what a score and a normaliser make of an
entry of a row (`entries`).
"""
