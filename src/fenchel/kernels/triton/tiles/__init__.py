"""A tile of rows in registers: its `axes`, how it comes from `memory` and goes back, and its sums and
maxima, `within_threads` and then `across_threads`.
"""
