"""A run in a process of its own that has too few addresses left for it."""

import multiprocessing
import resource
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from bench.growth import PRELOADED

from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.runs import memory
from runner.runs.execution import execute
from runner.runs.limits import Occupied
from runner.runs.run import Run


def starved(config: StudyConfig, outputs: Path, spare: int) -> tuple[str, str]:
    """What an attempt with `spare` more bytes than the program has ends in: exception, message.

    The run is not refused before it starts.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    own, others = context.Pipe(duplex=False)
    process = context.Process(target=_attempt, args=(config, outputs, spare, others))
    process.start()
    others.close()
    try:
        return own.recv()
    finally:
        process.join()


def _attempt(config: StudyConfig, outputs: Path, spare: int, answer: Connection) -> None:
    torch.set_num_threads(1)
    memory.require = lambda config, device: None
    resource.setrlimit(resource.RLIMIT_AS, (Occupied.now().addresses + spare,) * 2)
    try:
        execute(Run(config, outputs), Settings(outputs=str(outputs), device="cpu"))
    except Exception as error:
        answer.send((type(error).__name__, str(error)))
    else:
        answer.send(("", "it completed"))
