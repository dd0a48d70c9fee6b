"""Python processes that start with the libraries loaded, forked from a server that has them.

Starting Python and importing torch, pandas, matplotlib and Hydra takes longer than most commands of
the tests. The server has imported these libraries and nothing of this project. Its processes
therefore run the code of their PYTHONPATH and working directory, like `python -m`.
"""

import atexit
import importlib
import os
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from functools import cache
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from repository import REPOSITORY

PRELOADED = (
    "hydra.main",
    "hydra._internal.hydra",
    "matplotlib.pyplot",
    "numba",
    "pandas",
    "safetensors.torch",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.stats",
    "sklearn.datasets",
    "torch._dynamo",
    "tqdm",
)


class Process:
    """A started Python process, with the methods of `subprocess.Popen` that the tests use.

    arguments: the arguments of `python`: `-m module ...` or `script.py ...`.
    """

    def __init__(self, *arguments: str, cwd: Path = REPOSITORY, env: dict | None = None):
        self.arguments = arguments
        self.returncode: int | None = None
        self.outputs = [tempfile.NamedTemporaryFile("r") for _ in range(2)]  # noqa: SIM115
        self.server = Client(_server())
        names = [file.name for file in self.outputs]
        environment = dict(os.environ if env is None else env)
        self.server.send((list(map(str, arguments)), str(cwd), environment, *names))
        self.pid: int = self.server.recv()

    def poll(self) -> int | None:
        """Return the exit code, or None while the process is running."""
        if self.returncode is None and self.server.poll():
            self.returncode = self.server.recv()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return the exit code, once the process has ended.

        After `timeout` seconds the process is killed, and TimeoutExpired is raised.
        """
        if self.returncode is None and not self.server.poll(timeout):
            os.kill(self.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(self.arguments, timeout, *self.texts())
        return self.poll()

    def texts(self) -> tuple[str, str]:
        """Return the text written to stdout and stderr so far."""
        return tuple(Path(file.name).read_text() for file in self.outputs)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Return stdout and stderr after the process has ended."""
        self.wait(timeout)
        return self.texts()


def run(
    *arguments: str, cwd: Path = REPOSITORY, env: dict | None = None, timeout: float = 600
) -> subprocess.CompletedProcess:
    """Run a Python process like `subprocess.run` with captured text; return the ended process.

    arguments: the arguments of `python`. cwd: its working directory. env: its environment
    variables.
    """
    process = Process(*arguments, cwd=cwd, env=env)
    code = process.wait(timeout)
    return subprocess.CompletedProcess(arguments, code, *process.texts())


def run_line(line: str, **options: Any) -> subprocess.CompletedProcess:
    """Run a command as a page shows it, `runner ...` or `python ...`; return the ended process.

    options: as in `run`.
    """
    program, *words = shlex.split(line)
    return run(*{"runner": ("-m", "runner"), "python": ()}[program], *words, **options)


@cache
def _server() -> str:
    """Return the socket of this process's server, which ends with this process."""
    folder = tempfile.mkdtemp()
    address = os.path.join(folder, "warm")
    server = subprocess.Popen([sys.executable, __file__, address], start_new_session=True)
    atexit.register(server.kill)
    while not os.path.exists(address):
        assert server.poll() is None, "the server of warm processes has ended"
        time.sleep(0.01)
    return address


def _serve(address: str) -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    sys.path.pop(0)  # remove the folder of this script
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no parent waits for these processes
    listener = Listener(f"{address}.new")
    os.rename(f"{address}.new", address)  # the socket file exists only when the server listens
    while True:
        client = listener.accept()
        if os.fork() == 0:
            listener.close()
            _guard(client)
        client.close()


def _guard(client: Connection) -> None:
    """Fork the process, and send the test its number and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    job = client.recv()
    pid = os.fork()
    if pid == 0:
        client.close()
        _become(*job)
    client.send(pid)
    _, status = os.waitpid(pid, 0)
    try:
        client.send(os.waitstatus_to_exitcode(status))
    finally:  # the test may have ended
        os._exit(0)


def _become(
    arguments: list[str], folder: str, environment: dict[str, str], output: str, errors: str
) -> None:
    """Run `python <arguments>` in that folder, with that environment."""
    os.setpgid(0, 0)  # a test may interrupt it with all its processes, as a terminal does
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in enumerate((os.devnull, output, errors)):
        file = os.open(name, os.O_RDWR)
        os.dup2(file, number)
        os.close(file)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(":") if path]
    code = 0
    try:
        if arguments[0] == "-m":
            sys.path.insert(0, folder)
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(arguments[0]).parent))
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
