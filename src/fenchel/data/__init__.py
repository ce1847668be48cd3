"""Files to examples, examples to tensors."""

from fenchel.data.batches import LengthBuckets
from fenchel.data.codec import Codec
from fenchel.data.encoded import Batch, Encoded
from fenchel.data.example import Example
from fenchel.data.included import shipped
from fenchel.data.inflection import read_inflection
from fenchel.data.official import check, official_sets
from fenchel.data.parallel import read_parallel
from fenchel.data.segmentation import Characters, Segmentation, Subwords, Words
from fenchel.data.splits import read_official
from fenchel.data.summarization import read_summarization, reuters_headlines
from fenchel.data.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "Characters",
    "Codec",
    "Encoded",
    "Example",
    "LengthBuckets",
    "Segmentation",
    "Subwords",
    "Vocabulary",
    "Words",
    "check",
    "official_sets",
    "read_inflection",
    "read_official",
    "read_parallel",
    "read_summarization",
    "reuters_headlines",
    "shipped",
]
