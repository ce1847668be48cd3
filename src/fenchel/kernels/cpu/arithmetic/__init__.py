"""One number at a time, in forms that loops can use as vectors: functions of float32 (`elementary32`), of
float64 (`elementary64`), or of the precision of a row (`elementary`, `divided_differences`); what a score
and a normaliser make of an entry of a row (`entries`), and an entry of its derivatives (`weights`).
"""
