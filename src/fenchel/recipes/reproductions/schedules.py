"""How long and at which rate the models of the tables are trained.

The papers halve the rate whenever the validation loss rises. Here it follows a cosine, so that the
length of a run is known before it begins.
"""

from __future__ import annotations

_COSINE = ("schedule=cosine", "warmup_steps=200", "clip=1")


def _inflection(epochs: int, validate_every: int) -> tuple[str, ...]:
    large = ("batch_size=256", "learning_rate=0.002", "monitor=exact")
    return (*_COSINE, *large, f"epochs={epochs}", f"validate_every={validate_every}")


INFLECTION = {
    "medium": _inflection(epochs=100, validate_every=20),
    "high": _inflection(epochs=15, validate_every=3),
}
TEXT = (*_COSINE, "epochs=20", "validate_every=2")
