"""Self-contained HTML reports from plain data; independent of tasks and models."""

from fenchel.report.blocks import (
    Block,
    Cell,
    Chart,
    Columns,
    Figure,
    HighlightedText,
    Prediction,
    Report,
    Section,
    Table,
)
from fenchel.report.charts import Log, log_chart, read_log
from fenchel.report.densities import density_over_words
from fenchel.report.heads import (
    HeadEntry,
    HeadKey,
    HeadsView,
    ModelHeads,
    SentenceAttention,
    SparseRows,
    Trajectories,
    sparse_rows,
)
from fenchel.report.pictures import attention_map, lattice_picture
from fenchel.report.rendering import format_cell, render

__all__ = [
    "Block",
    "Cell",
    "Chart",
    "Columns",
    "Figure",
    "HeadEntry",
    "HeadKey",
    "HeadsView",
    "HighlightedText",
    "Log",
    "ModelHeads",
    "Prediction",
    "Report",
    "Section",
    "SentenceAttention",
    "SparseRows",
    "Table",
    "Trajectories",
    "attention_map",
    "density_over_words",
    "format_cell",
    "lattice_picture",
    "log_chart",
    "read_log",
    "render",
    "sparse_rows",
]
