"""Settings that every test shares."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

# Idle OpenMP threads sleep: the spinning threads of several workers would slow down each other tenfold.
# Read when torch loads OpenMP; workers and child processes inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch
from hypothesis import HealthCheck, settings

if importlib.util.find_spec("triton") is not None and not torch.cuda.is_available():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        import triton  # noqa: F401  (before PyTorch does: its own functions are defined only once)

import fenchel  # noqa: F401  (before doctests are collected, which would import its modules anew)

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:  # so that `tests.oracle` and `benchmarks` can be imported
    sys.path.insert(0, str(ROOT))

from tests.implementations import device_of, parameters  # noqa: E402

TIME_LIMIT = 300  # seconds per test
STDERR = pytest.StashKey[int]()

settings.register_profile(
    "fenchel",
    derandomize=True,
    deadline=None,
    max_examples=12,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "fuzz", settings.get_profile("fenchel"), derandomize=False, max_examples=50
)
settings.load_profile("fenchel")


def pytest_configure(config: pytest.Config) -> None:
    """What torch does on its own account when it is first used, and warns of."""
    config.addinivalue_line("filterwarnings", "ignore:.torch.jit.\\w+. is deprecated")
    config.addinivalue_line("filterwarnings", "ignore:Attempting to run cuBLAS, but there was no")
    config.stash[STDERR] = os.dup(2)  # before pytest captures it
    if not hasattr(config, "workerinput"):  # workers inherit the folder
        _compile_into_a_folder_of_this_session(config)


def _compile_into_a_folder_of_this_session(config: pytest.Config) -> None:
    """Inductor keeps graphs under the names of their operators, whatever their signatures were."""
    folder = TemporaryDirectory(prefix="fenchel-inductor-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name


@pytest.fixture(autouse=True)
def _time_limit(request: pytest.FixtureRequest):
    """End the process if a test hangs: Python cannot interrupt a compiled loop."""
    faulthandler.dump_traceback_later(TIME_LIMIT, exit=True, file=request.config.stash[STDERR])
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _validated_densities():
    """The first use of torch.compile in a process switches this off."""
    torch.distributions.Distribution.set_default_validate_args(True)


@pytest.fixture(autouse=True)
def _on_its_device(request: pytest.FixtureRequest):
    """What a test makes is made where it runs."""
    call = getattr(request.node, "callspec", None)
    with device_of(call.params.get("implementation") if call else None):
        yield


@pytest.fixture(params=parameters())
def implementation(request: pytest.FixtureRequest) -> str:
    """Each of them in turn, for tests that are not drawn by Hypothesis."""
    return request.param
