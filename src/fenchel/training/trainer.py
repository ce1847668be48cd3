"""Lightning's trainer, without the features that `RunRecorder` replaces."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.training.device import fast_matmul
from fenchel.training.graphs import records_steps
from fenchel.training.run import Run

lightning = require("lightning.pytorch", extra="train")
exceptions = require("lightning.fabric.utilities.exceptions", extra="train")
REFUSALS = (exceptions.MisconfigurationException, TypeError, ValueError)


def make_trainer(run: Run, callbacks: list[Any]) -> Any:
    """The trainer of a run. Validation and files are left to `RunRecorder`."""
    config = run.training
    logger: Any = False
    if find_spec("tensorboard") is not None:
        logs = require("lightning.pytorch.loggers", extra="train")
        logger = logs.TensorBoardLogger(run.path / "logs", name="", version="")
    try:
        trainer = lightning.Trainer(
            accelerator=config.accelerator,
            devices=config.devices,
            num_nodes=config.nodes,
            strategy=config.strategy,
            precision=config.precision,
            accumulate_grad_batches=config.accumulate,
            gradient_clip_val=None
            if records_steps(config, run.task.recordable_fields)
            else config.clip,
            max_epochs=-1,
            callbacks=callbacks,
            logger=logger,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
        )
    except REFUSALS as error:
        reason = " ".join(str(error).split())
        raise FenchelError(f"devices must be usable by Lightning, got: {reason}") from error
    _check_processes(trainer)
    return trainer


def _check_processes(trainer: Any) -> None:
    """Lightning starts any number of processes where there is no GPU."""
    cores = os.cpu_count() or 1
    on_cpu = isinstance(trainer.accelerator, lightning.accelerators.CPUAccelerator)
    if on_cpu and trainer.num_devices > cores:
        got = f"{trainer.num_devices} without a GPU"
        raise FenchelError(f"devices must be at most {cores}, the number of CPU cores, got {got}")


@contextmanager
def quiet() -> Iterator[None]:
    """Hide Lightning's messages but not its warnings, and allow TF32 matrix products on a GPU.

    The one warning hidden is about a torch class that Lightning itself still uses.
    """
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings(), fast_matmul():
            warnings.filterwarnings("ignore", message=r".*LeafSpec.*deprecated")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
