"""Integrals over the unit disk, for `pairs` of a density and a basis function: along which `chords`,
where on them to look (`peak`), and what a chord gives (`window`).
"""
