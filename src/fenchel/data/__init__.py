"""Files to records, records to symbols, symbols to batches: what several tasks share."""

from fenchel.data.batches import LengthBuckets
from fenchel.data.dataset import Dataset
from fenchel.data.public_set_info import check_public_set, public_sets
from fenchel.data.ragged import Ragged
from fenchel.data.records import Record, read_records
from fenchel.data.segmentation import Characters, Segmentation, Subwords, Words
from fenchel.data.vocabulary import Vocabulary

__all__ = [
    "Characters",
    "Dataset",
    "LengthBuckets",
    "Ragged",
    "Record",
    "Segmentation",
    "Subwords",
    "Vocabulary",
    "Words",
    "check_public_set",
    "public_sets",
    "read_records",
]
