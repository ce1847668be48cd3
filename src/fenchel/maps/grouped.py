"""Maps whose entries move in groups: beside the probabilities, the operator gives the groups.

They are what the algorithm found, saved for the derivatives: guessed from equal probabilities they
would be wrong wherever two groups agree to the last bit, which in half precision most neighbours do,
and at strength 0, where equal scores do not move together. `kernels/reference/<name>.py` says what the
integers of `groups` mean:

* `<name>(rows, strength)`, the map and the groups along the last dimension;
* `<name>_backward(grad, p, groups, dim)`, the (symmetric) Jacobian times a vector;
* `<name>_derivative(p, groups, dim)`, ∂p/∂strength.

Both derivatives depend on the groups alone, so a second derivative is zero almost everywhere. Maps of
grids take them as rows, and the width of the grid in place of `dim`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import BELOW_ZERO
from fenchel.maps.operator import MapOperator


class GroupedMapOperator(MapOperator[tuple[Tensor, Tensor]]):
    """A map with groups and the strength of its penalty, which may be 0: that is sparsemax."""

    def __init__(self, name: str, groups: torch.dtype, layout: str = "dim") -> None:
        super().__init__(name, "strength", above=BELOW_ZERO, groups=groups, layout=layout)
