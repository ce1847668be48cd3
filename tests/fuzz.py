"""Run the Hypothesis tests on new examples: `make fuzz`, for FUZZ_SECONDS seconds.

`make test` draws the same few examples every time. This script draws new ones, from each area in turn,
counts them, and stops at the first failure, whose example Hypothesis prints. A test that hangs ends the
process with a traceback.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

AREAS = {
    "maps": ("tests/maps",),
    "losses": ("tests/test_losses.py",),
    "attention": ("tests/mechanisms",),
    "search certificates": ("tests/search",),
    "readers": ("tests/data",),
    "stored files": ("tests/recipes",),
}


class Fuzzer:
    """A pytest plugin that runs the collected Hypothesis tests until the time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.examples: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if _is_drawn(item)]
        # Parametrised items share one Hypothesis handle, which must be wrapped once.
        handles = {id(item.obj.hypothesis): (item.obj.hypothesis, _area(item)) for item in items}
        for handle, area in handles.values():
            handle.inner_test = self._counted(handle.inner_test, area)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        end = time.monotonic() + self.seconds
        for item in _turns(session.items):
            if time.monotonic() >= end or session.testsfailed:
                return True
            # Without a next item every fixture is torn down, so that an item can run again.
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return True

    def _counted(self, test: Callable[..., Any], area: str) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.examples[area] += 1
            return test(*args, **kwargs)

        return counted


def _is_drawn(item: pytest.Item) -> bool:
    return hasattr(getattr(item, "obj", None), "hypothesis")


def _area(item: pytest.Item) -> str:
    path = item.path.relative_to(item.config.rootpath).as_posix()
    return next(area for area, starts in AREAS.items() if path.startswith(starts))


def _turns(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """A random test of each area in turn, without end."""
    tests = {area: [item for item in items if _area(item) == area] for area in AREAS}
    for area, of_area in tests.items():
        if not of_area:
            raise pytest.UsageError(
                f"no Hypothesis test found for {area} in {', '.join(AREAS[area])}"
            )
    while True:
        for of_area in tests.values():
            yield random.choice(of_area)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    seconds = parser.parse_args().seconds
    fuzzer = Fuzzer(seconds)
    paths = [path for starts in AREAS.values() for path in starts]
    options = ["-q", "-m", "not gpu", "--no-header", "--hypothesis-profile=fuzz"]
    status = pytest.main([*options, *paths], plugins=[fuzzer])
    for area in AREAS:
        print(f"{area:<20} {fuzzer.examples[area]:>9,} examples")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
