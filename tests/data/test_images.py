"""Images from files that may be missing, damaged or far too large, and their grids of features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from fenchel import FenchelError
from fenchel.data import grids
from fenchel.data.grids import cache_folder, image_grids, is_kept
from fenchel.data.images import check_image, read_image, thumbnail
from tests.pictures import bomb, drawing


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_image_is_read_in_rgb_and_stretched_to_a_square(tmp_path):
    path = drawing(tmp_path / "a.png")
    assert read_image(path).size == (40, 30)
    pixels = np.asarray(read_image(path, 64))
    assert pixels.shape == (64, 64, 3)
    assert (pixels == (200, 30, 30)).all()
    Image.new("L", (5, 5), 7).save(tmp_path / "grey.png")
    assert np.asarray(read_image(tmp_path / "grey.png")).tolist() == [[[7, 7, 7]] * 5] * 5


def test_a_rotated_photograph_is_upright(tmp_path):
    image = Image.new("RGB", (40, 30))
    exif = image.getexif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(tmp_path / "turned.jpg").size == (30, 40)


@pytest.mark.parametrize("side", [8_000, 12_000, 60_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path, side):
    """Also where Pillow itself only warns, or refuses in words of its own."""
    path = bomb(tmp_path / "bomb.png", side)
    assert path.stat().st_size < 1000
    with pytest.raises(FenchelError, match=r"at most 50,000,000 pixels, got .*bomb\.png"):
        check_image(path)


def test_missing_and_damaged_images_are_named(tmp_path):
    whole = drawing(tmp_path / "whole.jpg", size=(400, 300)).read_bytes()
    (tmp_path / "half.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.jpg").write_bytes(b"no image")
    for name in ("half.jpg", "text.jpg", "nowhere.jpg"):
        for read in (check_image, lambda path: image_grids([path], 1)):
            with pytest.raises(FenchelError, match=f"image must be readable, got .*{name}"):
                read(tmp_path / name)


def test_a_thumbnail_keeps_the_proportions(tmp_path):
    data, size = thumbnail(drawing(tmp_path / "a.png", size=(640, 480)), 320)
    assert size == (320, 240)
    assert data.startswith(b"\xff\xd8")


def test_features_are_computed_once_per_image(tmp_path, monkeypatch):
    red, blue = drawing(tmp_path / "red.png"), drawing(tmp_path / "blue.png", (30, 30, 200))
    first = image_grids([red, blue, red], 1)
    assert first.shape == (3, 1, 1280)
    assert first.dtype == torch.float16
    assert first[0].equal(first[2])
    assert not first[0].equal(first[1])
    assert is_kept(red, 1)
    assert not is_kept(red, 2)

    def refuse(*_):
        raise AssertionError("features must not be computed again")

    monkeypatch.setattr(grids, "_compute", refuse)
    moved = red.rename(tmp_path / "moved.png")
    assert image_grids([moved, blue], 1).equal(first[:2])


@pytest.mark.parametrize("damage", [b"", b"no features"])
def test_damaged_features_are_computed_again(tmp_path, damage):
    path = drawing(tmp_path / "a.png")
    first = image_grids([path], 1)
    (file,) = cache_folder().rglob("*.npy")
    file.write_bytes(damage)
    assert image_grids([path], 1).equal(first)
    assert file.stat().st_size > 2000
