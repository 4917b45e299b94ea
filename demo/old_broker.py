"""A real broker of an older Kafka on a free loopback port: KRaft, or with its ZooKeeper."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException

from demo.broker import free_ports
from demo.jars import JarSet, fetch_jars, java
from demo.node import BrokerFailed, kafka_uuid
from demo.warm_up import warm_up

VERSIONS = ("2.8.2", "3.3.2", "3.7.2", "3.9.1", "4.0.0")
"""The last patch of releases that are still met in the field. Newest is the demonstration's own."""
_LOGGING = Path(__file__).with_name("log4j.properties")
_READY = re.compile(rb"Kafka Server started|\[KafkaServer id=0\] started")
_ZOOKEEPER = "org.apache.zookeeper.server.ZooKeeperServerMain"


def kafka_jars(version: str) -> JarSet:
    """The jars of that release, with the logging that it expects."""
    logging = (
        ("org.slf4j", "slf4j-reload4j", "1.7.36")
        if version < "4"
        else ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
    )
    variable = f"KAFKA_SLA_JARS_{version.replace('.', '_')}"
    return JarSet(
        f"Apache Kafka {version}",
        f"kafka-{version}",
        variable,
        45,
        (("org.apache.kafka", "kafka_2.13", version), logging),
    )


class OldBroker:
    """One broker, up and taking commits inside the `with` block, gone after it. 2.8 and older run with ZooKeeper."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.folder = Path(tempfile.mkdtemp(prefix=f"kafka-{version}-"))
        self._port, self._other = free_ports(2)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def client(self, user: str = "") -> dict[str, str]:
        """Settings by confluent-kafka's names."""
        return {"bootstrap.servers": self.bootstrap}

    def __enter__(self) -> OldBroker:
        try:
            settings = self._settings()
            if self.version < "3":
                self._start("zookeeper", _ZOOKEEPER, str(self._other), str(self.folder / "zookeeper"))
            else:
                format_it = self._java("kafka.tools.StorageTool", "format", "-t", kafka_uuid(), "-c", str(settings))
                subprocess.run(format_it, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._start("broker", "kafka.Kafka", str(settings))
            self._wait()
            return self
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _settings(self) -> Path:
        listener = f"PLAINTEXT://127.0.0.1:{self._port}"
        properties = {
            "advertised.listeners": listener,
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": "8388608",
        }
        if self.version < "3":
            properties |= {"broker.id": "0", "zookeeper.connect": f"127.0.0.1:{self._other}", "listeners": listener}
        else:
            properties |= {
                "process.roles": "broker,controller",
                "node.id": "0",
                "controller.quorum.voters": f"0@127.0.0.1:{self._other}",
                "listeners": f"{listener},CONTROLLER://127.0.0.1:{self._other}",
                "controller.listener.names": "CONTROLLER",
            }
        file = self.folder / "broker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return file

    def _java(self, *command: str) -> list[str]:
        memory = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        newer = _LOGGING.with_name("log4j2.yaml")
        logging = [f"-Dlog4j.configuration=file:{_LOGGING}", f"-Dlog4j2.configurationFile={newer}"]
        return [java(), *memory, *logging, "-cp", f"{fetch_jars(jars=kafka_jars(self.version))}/*", *command]

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    self._java(*command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _wait(self, seconds: float = 120) -> None:
        """Until the broker says that it is up, and takes commits."""
        deadline, log = time.monotonic() + seconds, self.folder / "broker.log"
        while not _READY.search(log.read_bytes()):
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise BrokerFailed(f"Kafka {self.version} did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)
        try:
            warm_up(self.client())
        except (KafkaException, TimeoutError) as error:
            text = log.read_text(errors="replace")[-3000:]
            raise BrokerFailed(f"Kafka {self.version} takes no commits ({error}):\n{text}") from error
