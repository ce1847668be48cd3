"""The operators of all maps: parameter, its lower bound, and groups of entries if there are any."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import BELOW_ZERO
from fenchel.operators.map_operator import MapOperator

ENTMAX = MapOperator[Tensor]("entmax", "alpha", above=0)  # also softmax, sparsemax and all losses
NORMMAX = MapOperator[Tensor]("normmax", "alpha", above=1)
PNORMMAX = MapOperator[Tensor]("pnormmax", "p", above=1)
BUDGET = MapOperator[Tensor]("budget", "k", above=BELOW_ZERO)

Grouped = MapOperator[tuple[Tensor, Tensor]]
FUSEDMAX = Grouped("fusedmax", "strength", above=BELOW_ZERO, groups=torch.int8)
OSCARMAX = Grouped("oscarmax", "strength", above=BELOW_ZERO, groups=torch.int32)
FUSEDMAX2D = Grouped("fusedmax2d", "strength", above=BELOW_ZERO, groups=torch.int32, layout="width")
