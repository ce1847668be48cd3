"""Figures of the maps, the losses, the densities, attention heads and the results of a search.

Each function draws on the axes or the figure it is given, or on a new one, and returns it; save a
figure with `fenchel.plot.curves(...).figure.savefig("curves.png")`. Global state is left alone:
pyplot is not imported, and no settings are changed. Matplotlib (the extra `fenchel[plot]`) is
imported when a function is called.
"""

from fenchel.plot.continuous_attention import densities, density_over_text, ellipse_over_image
from fenchel.plot.decoding import autocompletion, lattice
from fenchel.plot.errors import courses_with_errors
from fenchel.plot.heads import (
    alpha_courses,
    head_densities,
    head_diversity,
    head_histograms,
    head_matrices,
)
from fenchel.plot.map_curves import alpha_bars, alpha_curves, alpha_sweep, curves, losses
from fenchel.plot.structured import regions, three_scores, two_scores, weights_over_text
from fenchel.plot.surfaces import simplex_surface

__all__ = [
    "alpha_bars",
    "alpha_courses",
    "alpha_curves",
    "alpha_sweep",
    "autocompletion",
    "courses_with_errors",
    "curves",
    "densities",
    "density_over_text",
    "ellipse_over_image",
    "head_densities",
    "head_diversity",
    "head_histograms",
    "head_matrices",
    "lattice",
    "losses",
    "regions",
    "simplex_surface",
    "three_scores",
    "two_scores",
    "weights_over_text",
]
