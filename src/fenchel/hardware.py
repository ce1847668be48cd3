"""The processor, for measurements that name the hardware."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> str:
    """The model of the CPU, or its architecture if the system does not name the model."""
    details = Path("/proc/cpuinfo")
    lines = details.read_text(encoding="utf-8").splitlines() if details.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
