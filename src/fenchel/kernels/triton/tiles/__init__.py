"""A tile of rows in registers: how it gets there, and its sums and maxima."""
