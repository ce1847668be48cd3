"""All runs of some experiments through one pool; figures come as soon as there are any."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fenchel.recipes.reproductions.comparison import Comparison
from fenchel.recipes.reproductions.job import Job, Measured, Voice
from fenchel.recipes.reproductions.plan import all_jobs
from fenchel.recipes.reproductions.pool import Failure, Pool
from fenchel.recipes.reproductions.rows import Finding


@dataclass(frozen=True)
class Failed:
    """What went wrong, and in which run or ensemble."""

    name: str
    failure: Failure


Step = tuple[Comparison, list[Finding]] | Failed


def reproduced(
    made: Sequence[Comparison], at_once: int, voice: Voice
) -> Generator[Step, None, None]:
    """The figures of the experiments, better known after every seed, and what went wrong.

    Args:
        made: the experiments.
        at_once: how many runs are trained side by side; one is trained in this process.
        voice: how the runs are heard; if they are in processes of their own, it travels there.
    """
    results: dict[Path, Measured] = {}
    with Pool[Job | Comparison](at_once) as pool:
        for job in all_jobs(made):
            pool.add(job, partial(job, voice))
        for key, outcome in pool.outcomes():
            if isinstance(outcome, Failure):
                yield Failed(key.name, outcome)
            elif isinstance(key, Comparison):
                yield key, [key.ensemble_finding(outcome, results)]
            else:
                results[key.folder] = outcome
                for each in made:
                    if each.needs(key):
                        yield each, each.findings(results)
                        ensemble = each.ensemble(results)
                        if ensemble is not None:
                            pool.add(each, partial(ensemble, voice))
