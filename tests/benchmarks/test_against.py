"""The comparison of two versions."""

from __future__ import annotations

import pytest

from benchmarks.against import _check_out, compare


def test_the_ratio_compares_the_same_number_of_calls():
    asked = []

    def worker(seconds):
        def ask(request):
            asked.append(request)
            return seconds

        return ask

    key = ("maps 4 × 64", "fenchel.entmax")
    assert compare(worker(2e-3), worker(1e-3), key, rounds=3) == 0.5
    assert [calls for *_, calls in asked] == [1, 1] + [30] * 6
    assert all((case, name) == key for case, name, _ in asked)


def test_an_unknown_commit_is_named(tmp_path):
    with pytest.raises(SystemExit, match="COMMIT must be known to git, got no-such-commit"):
        _check_out("no-such-commit", tmp_path)
