"""A real Kafka broker for tests: one process, from pinned jars, on free ports of this machine.

    python -m tests.spark.kafka_broker 9092

starts one at that port of this machine until it is interrupted, for tutorials.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic, sleep

from stentor.pipeline.spark.jars import fetched_jars
from stentor.pipeline.spark.java import find_java

JARS = Path(__file__).with_name("kafka_broker.txt")
MOST_SECONDS = 60

_SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={folder}/log
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def kafka_broker(wanted_port: int | None = None) -> Iterator[str]:
    """A broker that takes connections at the `host:port` given; stopped at the end."""
    java = find_java()
    assert java is not None
    path = ":".join(map(str, fetched_jars(JARS)))
    with tempfile.TemporaryDirectory(prefix="stentor-kafka-") as folder:
        port, controller = _free_ports(2)
        port = wanted_port or port
        settings = Path(folder, "server.properties")
        settings.write_text(_SETTINGS.format(port=port, controller=controller, folder=folder))
        command = [str(java), *_SMALL, "-cp", path]
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        subprocess.run(
            [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)],
            check=True,
            capture_output=True,
            timeout=MOST_SECONDS,
        )
        log = Path(folder, "broker.log")
        with log.open("wb") as output:
            broker = subprocess.Popen(
                [*command, "kafka.Kafka", str(settings)], stdout=output, stderr=output
            )
        try:
            _wait(broker, f"127.0.0.1:{port}", log)
            yield f"127.0.0.1:{port}"
        finally:
            broker.kill()  # nothing in it is worth a controlled shutdown
            broker.wait()


def _wait(broker: subprocess.Popen[bytes], servers: str, log: Path) -> None:
    from confluent_kafka.admin import AdminClient

    silent = {
        "bootstrap.servers": servers,
        "log_level": 0,
        "socket.connection.setup.timeout.ms": 1000,
    }
    deadline = monotonic() + MOST_SECONDS
    while monotonic() < deadline:
        if broker.poll() is not None:
            raise RuntimeError(f"the Kafka broker ended at once: {log.read_text()[-2000:]}")
        if _accepts(servers):
            AdminClient(silent).list_topics(timeout=MOST_SECONDS)
            return
        sleep(0.1)
    raise RuntimeError(f"the Kafka broker was not ready after {MOST_SECONDS} s")


def _accepts(servers: str) -> bool:
    host, port = servers.split(":")
    with socket.socket() as attempt:
        attempt.settimeout(1)
        return attempt.connect_ex((host, int(port))) == 0


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


if __name__ == "__main__":
    with kafka_broker(int(sys.argv[1]) if len(sys.argv) > 1 else 9092) as where:
        print(f"Kafka at {where}; stop it with Ctrl-C", flush=True)
        try:
            Event().wait()
        except KeyboardInterrupt:
            print("Kafka has stopped, and everything in it is gone")
