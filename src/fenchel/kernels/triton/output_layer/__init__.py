"""Kernels for the gradients of an output layer, where those of the scores are mostly zero: rows are
listed and summed (`sparse_weight`, `sparse_hidden`), and multiplied if they are too full for that
(`full_rows`).
"""
