"""A standalone Spark cluster on this machine, from the pip package: a master and workers."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from stentor.pipeline.spark.java import MISSING, find_java, have_spark_use

HOST = "127.0.0.1"
_HOME = Path(pyspark.__file__).parent
_PACKAGE = "org.apache.spark.deploy"
#: Each is there for a minute or two only.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Cluster:
    """A running cluster; its executors are children of its workers."""

    master: str
    workers: tuple[int, ...]  # process ids

    def executors(self) -> list[int]:
        """The process ids of the executors."""
        listed = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,command="], capture_output=True, text=True, check=True
        )
        processes = (line.split(None, 2) for line in listed.stdout.splitlines())
        return [
            int(pid)
            for pid, parent, command in processes
            if int(parent) in self.workers and "CoarseGrainedExecutorBackend" in command
        ]

    def kill_an_executor(self) -> int:
        """Kill one, as the system would that runs out of memory; its process id."""
        executor = self.executors()[0]
        os.kill(executor, signal.SIGKILL)
        return executor


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster of *workers* with a core and a gigabyte each; all of it ends with the block."""
    java = find_java()
    if java is None:
        raise SystemExit(MISSING)
    have_spark_use(java)
    port = _free_port()
    with ExitStack() as running:
        own = ["--host", HOST, "--port", str(port), "--webui-port", "0"]
        running.enter_context(_started("master.Master", own, folder / "master.log"))
        _await_port(port, folder / "master.log")
        master = f"spark://{HOST}:{port}"
        pids = []
        for number in range(workers):
            own = ["--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            own += ["--work-dir", str(folder / f"worker-{number}"), master]
            log = folder / f"worker-{number}.log"
            pids.append(running.enter_context(_started("worker.Worker", own, log)).pid)
        yield Cluster(master, tuple(pids))


@contextmanager
def _started(name: str, arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Spark's, the class *name*, which is stopped with its children at the end."""
    settings = {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _QUICK,
    }
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [_HOME / "bin" / "spark-class", f"{_PACKAGE}.{name}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | settings,
            start_new_session=True,  # a group of its own: executors of a worker belong to it
        ) as process,
    ):
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            finally:
                _kill_group(process.pid)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:  # nobody is left
        return


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def _await_port(port: int, log: Path, seconds: float = 60) -> None:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        with socket.socket() as trial:
            if trial.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"the master does not answer; it says:\n{log.read_text()[-3000:]}")
