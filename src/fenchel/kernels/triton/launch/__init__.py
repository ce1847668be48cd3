"""What makes a launch: where rows lie (`addressing`), parameters as kernels take them (`alpha`,
`parameters`), tiles and warps (`tile_shapes`, `long_row_shapes`), and what is launched (`kernel`), or
launched again without being decided anew (`replay`).
"""
