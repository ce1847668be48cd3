"""Benchmarks of fenchel against PyTorch and other packages: `python -m benchmarks [--device cuda]`.

| module | contents |
|---|---|
| `problems`, `inputs` | the shapes that are measured, and their tensors |
| `registry`, `attention`, `sparse_attention`, `searching`, `decoding` | the operations |
| `peers` | the operations of other packages |
| `compilation` | compiles kernels before they are timed |
| `timing`, `runner` | times a call; measures all operations of a case in turns |
| `rows`, `environment` | the rows of the CSV files, and the hardware and versions in them |
| `report`, `picture`, `styles`, `aims` | tables and pictures of the rows |
| `against` | compares the working tree with an earlier commit |
| `ablations` | compares the CPU kernels with and without each special path |
"""
