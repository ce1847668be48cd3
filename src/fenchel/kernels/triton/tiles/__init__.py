"""Tiles of rows in registers: their layout, and their sums and maxima."""
