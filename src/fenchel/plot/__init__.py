"""Pictures of the maps, the losses and the densities, as in the papers' figures.

Every function draws on the axes it is given, or on a new figure of its own, and returns them; save
with `fenchel.plot.curves(...).figure.savefig("curves.png")`. Nothing global is touched: no pyplot,
no settings, no window. Matplotlib (the extra `fenchel[plot]`) is loaded at the first picture.
"""

from fenchel.plot.alpha import ALPHAS, SCORES, alpha_bars, alpha_curves, alpha_sweep
from fenchel.plot.attended import density_over_text, ellipse_over_image
from fenchel.plot.binary import Map, curves, losses
from fenchel.plot.families import densities
from fenchel.plot.search import autocompletion, lattice
from fenchel.plot.structured import regions, segments, three_scores, two_scores
from fenchel.plot.style import (
    ALPHA_RAMP,
    FAINT,
    GRID,
    INK,
    OTHER_COLOURS,
    alpha_colour,
    colours,
    key,
    new_figure,
    style_axes,
)
from fenchel.plot.surfaces import simplex_surface

__all__ = [
    "ALPHAS",
    "ALPHA_RAMP",
    "FAINT",
    "GRID",
    "INK",
    "OTHER_COLOURS",
    "SCORES",
    "Map",
    "alpha_bars",
    "alpha_colour",
    "alpha_curves",
    "alpha_sweep",
    "autocompletion",
    "colours",
    "curves",
    "densities",
    "density_over_text",
    "ellipse_over_image",
    "key",
    "lattice",
    "losses",
    "new_figure",
    "regions",
    "segments",
    "simplex_surface",
    "style_axes",
    "three_scores",
    "two_scores",
]
