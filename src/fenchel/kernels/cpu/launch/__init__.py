"""What a kernel needs to run: the `memory` it reads and writes, its `compilation`, the `threads` that run
it, and how these are `sharing` its rows.
"""
