"""BibTeX entries of the papers behind maps, losses and layers."""

from __future__ import annotations

from typing import Any

from fenchel.errors import unknown

SPARSEMAX = "martins2016softmax"
FRAMEWORK = "niculae2017regularized"
ENTMAX = "peters2019sparse"
ADAPTIVE = "correia2019adaptively"
LOSSES = "blondel2020learning"
BUDGET = "martins2017learning"
CONTINUOUS = "martins2020sparse"
ADDITIVE = "bahdanau2015neural"
GENERAL = "luong2015effective"

ENTRIES = {
    SPARSEMAX: """@inproceedings{martins2016softmax,
  title     = {From Softmax to Sparsemax: A Sparse Model of Attention and Multi-Label Classification},
  author    = {Martins, Andr{\\'e} F. T. and Astudillo, Ram{\\'o}n F.},
  booktitle = {International Conference on Machine Learning},
  year      = {2016},
}""",
    FRAMEWORK: """@inproceedings{niculae2017regularized,
  title     = {A Regularized Framework for Sparse and Structured Neural Attention},
  author    = {Niculae, Vlad and Blondel, Mathieu},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2017},
}""",
    BUDGET: """@inproceedings{martins2017learning,
  title     = {Learning What's Easy: Fully Differentiable Neural Easy-First Taggers},
  author    = {Martins, Andr{\\'e} F. T. and Kreutzer, Julia},
  booktitle = {Empirical Methods in Natural Language Processing},
  year      = {2017},
}""",
    ENTMAX: """@inproceedings{peters2019sparse,
  title     = {Sparse Sequence-to-Sequence Models},
  author    = {Peters, Ben and Niculae, Vlad and Martins, Andr{\\'e} F. T.},
  booktitle = {Annual Meeting of the Association for Computational Linguistics},
  year      = {2019},
}""",
    ADAPTIVE: """@inproceedings{correia2019adaptively,
  title     = {Adaptively Sparse Transformers},
  author    = {Correia, Gon{\\c{c}}alo M. and Niculae, Vlad and Martins, Andr{\\'e} F. T.},
  booktitle = {Empirical Methods in Natural Language Processing},
  year      = {2019},
}""",
    LOSSES: """@article{blondel2020learning,
  title   = {Learning with Fenchel-Young Losses},
  author  = {Blondel, Mathieu and Martins, Andr{\\'e} F. T. and Niculae, Vlad},
  journal = {Journal of Machine Learning Research},
  volume  = {21},
  year    = {2020},
}""",
    CONTINUOUS: """@inproceedings{martins2020sparse,
  title     = {Sparse and Continuous Attention Mechanisms},
  author    = {Martins, Andr{\\'e} F. T. and Farinhas, Ant{\\'o}nio and Treviso, Marcos and
               Niculae, Vlad and Aguiar, Pedro M. Q. and Figueiredo, M{\\'a}rio A. T.},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2020},
}""",
    ADDITIVE: """@inproceedings{bahdanau2015neural,
  title     = {Neural Machine Translation by Jointly Learning to Align and Translate},
  author    = {Bahdanau, Dzmitry and Cho, Kyunghyun and Bengio, Yoshua},
  booktitle = {International Conference on Learning Representations},
  year      = {2015},
}""",
    GENERAL: """@inproceedings{luong2015effective,
  title     = {Effective Approaches to Attention-based Neural Machine Translation},
  author    = {Luong, Minh-Thang and Pham, Hieu and Manning, Christopher D.},
  booktitle = {Empirical Methods in Natural Language Processing},
  year      = {2015},
}""",
}

USED_BY = {
    "softmax": (LOSSES,),
    "sparsemax": (SPARSEMAX,),
    "sparsemax_loss": (SPARSEMAX,),
    "Gini": (SPARSEMAX, LOSSES),
    "entmax": (ENTMAX, ADAPTIVE),
    "entmax_loss": (ENTMAX, LOSSES),
    "linear_entmax_loss": (ENTMAX, LOSSES),
    "Tsallis": (ENTMAX, LOSSES),
    "attention": (ENTMAX, ADAPTIVE),
    "attention_weights": (ENTMAX, ADAPTIVE),
    "MultiheadAttention": (ADAPTIVE,),
    "AdditiveAttention": (ADDITIVE,),
    "GeneralAttention": (GENERAL,),
    "Logistic": (SPARSEMAX,),
    "normmax": (LOSSES,),
    "normmax_loss": (LOSSES,),  # of the names of the package entmax
    "Norm": (LOSSES,),
    "Shannon": (LOSSES,),
    "fenchel_young_loss": (LOSSES,),
    "budget": (BUDGET,),
    "fusedmax": (FRAMEWORK,),
    "fusedmax2d": (FRAMEWORK,),
    "fused_groups": (FRAMEWORK,),
    "oscarmax": (FRAMEWORK,),
    "oscarmax_composition": (FRAMEWORK,),
    "pnormmax": (FRAMEWORK,),
    "Fused": (FRAMEWORK,),
    "Oscar": (FRAMEWORK,),
    "PNorm": (FRAMEWORK,),
    "Custom": (FRAMEWORK,),
    "ContinuousAttention1d": (CONTINUOUS,),
    "ContinuousAttention2d": (CONTINUOUS,),
    "TruncatedParabola": (CONTINUOUS,),
    "TruncatedParaboloid": (CONTINUOUS,),
    "BetaGaussian": (CONTINUOUS,),
    "Triangular": (CONTINUOUS,),
    "LocationScale": (CONTINUOUS,),
    "GaussianBasis": (CONTINUOUS,),
    "ridge_values": (CONTINUOUS,),
}


def citation(*used: Any) -> str:
    """The BibTeX entries of maps, losses, regularizers or modules, or of their names; without any, all.

    >>> import fenchel
    >>> print(fenchel.citation(fenchel.sparsemax).splitlines()[0])
    @inproceedings{martins2016softmax,
    >>> fenchel.citation("sparsemax") == fenchel.citation(fenchel.nn.Sparsemax())
    True
    """
    keys = [key for item in used for key in _keys(item)] if used else ENTRIES
    return "\n\n".join(ENTRIES[key] for key in dict.fromkeys(keys))


def _keys(item: Any) -> tuple[str, ...]:
    """What to cite for a thing, for its name, or for the key of an entry."""
    path = item if isinstance(item, str) else _path(item)
    name = path.rpartition(".")[2]
    if name in ENTRIES:
        return (name,)
    if ".continuous." in path:  # where an entmax is, too
        return (CONTINUOUS,)
    papers = {_plain(known): keys for known, keys in USED_BY.items()}.get(_plain(name))
    if papers is None:
        raise unknown("method", name, sorted(USED_BY), "All entries: fenchel cite")
    return papers


def _path(item: Any) -> str:
    named = item if hasattr(item, "__name__") else type(item)
    return ".".join(filter(None, (getattr(named, "__module__", None), named.__name__)))


def _plain(name: str) -> str:
    """The names of a function and of its module differ only in what is dropped here.

    So do those of the package `entmax`, which say how it computes: `entmax15`, `budget_bisect`.
    """
    return name.lower().replace("_", "").replace("bisect", "").replace("15", "")
