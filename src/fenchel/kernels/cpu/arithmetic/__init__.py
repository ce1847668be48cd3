"""One number at a time, in forms that loops can use as vectors: functions of rows' own precision
(`elementary`, `divided_differences`) and of float64 (`elementary64`), and what a score and a normaliser
make of an entry of a row (`entries`), and an entry of its derivatives (`weights`).
"""
