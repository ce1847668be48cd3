"""Queries, keys and values of a language model of characters, trained for a minute on inflected words.

Every line of the text is a word, an inflected form and its features, so that the model attends to the
letters of the word while it writes the form. The words come with the package.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.data.vocabulary import SPECIAL
from fenchel.models import LanguageModel, LanguageModelConfig
from fenchel.models.transformer.layer import TransformerLayer

LENGTH, TEXTS, STEPS = 512, 2, 200  # of training
LAYERS, MAX_POSITIONS = 2, 16_384
LANGUAGES = ("english", "finnish", "spanish", "turkish")


class Texts(NamedTuple):
    tokens: Tensor
    lengths: Tensor


def _characters(split: str) -> str:
    folder = files("fenchel.data") / "shipped"
    names = [f"{language}-{split}.tsv" for language in LANGUAGES]
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


@lru_cache
def _tokens(split: str) -> Tensor:
    known = sorted(set(_characters("train") + _characters("dev")))
    places = {character: len(SPECIAL) + i for i, character in enumerate(known)}
    return torch.tensor([places[character] for character in _characters(split)])


@lru_cache
def _trained_model(heads: int, size: int) -> LanguageModel:
    torch.manual_seed(0)
    text, other = _tokens("train"), _tokens("dev")
    config = LanguageModelConfig(
        vocabulary_size=int(torch.cat([text, other]).max()) + 1,
        hidden_size=heads * size,
        heads=heads,
        layers=LAYERS,
        feedforward_size=heads * size,
        dropout=0.0,
        attention_alpha=1.5,
        max_positions=MAX_POSITIONS,
    )
    model = LanguageModel(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
    for _ in range(STEPS):
        starts = torch.randint(len(text) - LENGTH, (TEXTS, 1))
        texts = Texts(text[starts + torch.arange(LENGTH)], torch.full((TEXTS,), LENGTH))
        total, count = model.loss(texts, describe=False)["loss"]
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()
    return model.eval()


@lru_cache
def trained_heads(heads: int, length: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """What the heads of the last layer attend with in a new text, each (1, heads, length, size)."""
    model = _trained_model(heads, size)
    layer = model.decoder.layers[-1]
    assert isinstance(layer, TransformerLayer)
    seen: list[Tensor] = []
    hook = layer.self_attn.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        model.hidden(_tokens("dev")[:length].unsqueeze(0))
        q, k, v = layer.self_attn.project(*seen * 3)
    hook.remove()
    return q.contiguous(), k.contiguous(), v.contiguous()
