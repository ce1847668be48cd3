"""How maps and losses become PyTorch operators, and which backend computes them.

A call goes down through these modules:

    map_operator, entmax_loss, …   the operators: arguments, derivatives, what the backend is given
    direct_call                    straight to the kernel, or through PyTorch's dispatcher
    dispatch                       the backend, chosen by device and dtype
    layout                         rows for the backends that take rows

`registration` and `derivatives` are used when the operators are defined.
"""
