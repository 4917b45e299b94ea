"""A real Kafka Streams application that copies records, for tests of the groups that it makes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from demo.broker import Cluster
from demo.jars import STREAMS, fetch_jars, jars_folder, java

_LOGGING = Path(__file__).with_name("log4j2.yaml")
_OPTIONS = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={_LOGGING}"]


class StreamsApp:
    """Merges topics into another one inside the `with` block, from their beginning on; its group is `name`.

    `protocol`: classic, or streams (KIP-1071).
    """

    def __init__(
        self, cluster: Cluster, name: str, sources: Sequence[str], sink: str, protocol: str, threads: int = 1
    ) -> None:
        self._cluster, self._name, self._sources, self._sink = cluster, name, sources, sink
        self._settings = {"group.protocol": protocol, "num.stream.threads": str(threads)}
        self._stack = ExitStack()
        self._streams: Any = None

    @property
    def state(self) -> str:
        """Kafka's word: REBALANCING, RUNNING, …"""
        return str(self._streams.state().name())

    def __enter__(self) -> StreamsApp:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="streams-"))
        kafka = fetch_jars()
        fetch_jars(jars=STREAMS)
        port, secret = launch_gateway(
            classpath=f"{kafka}/*:{jars_folder(STREAMS)}/*",
            javaopts=_OPTIONS,
            java_path=java(),
            die_on_exit=True,
            enable_auth=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))
        self._stack.callback(gateway.shutdown)
        self._streams = self._built(gateway.jvm, folder)
        self._stack.callback(lambda: self._streams.close())
        self._streams.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _built(self, jvm: Any, folder: str) -> Any:
        bytes_only = "org.apache.kafka.common.serialization.Serdes$ByteArraySerde"
        own = {"default.key.serde": bytes_only, "default.value.serde": bytes_only, "commit.interval.ms": "200"}
        settings = jvm.java.util.Properties()
        of_app = self._settings | own | {"application.id": self._name, "state.dir": folder}
        for key, value in (_as_java_says(self._cluster.client()) | of_app).items():
            settings.setProperty(key, value)
        builder = jvm.org.apache.kafka.streams.StreamsBuilder()
        first, *others = [builder.stream(source) for source in self._sources]
        for other in others:
            first = first.merge(other)
        first.to(self._sink)
        return jvm.org.apache.kafka.streams.KafkaStreams(builder.build(), settings)


def _as_java_says(client: dict[str, str]) -> dict[str, str]:
    """A client's settings by Java's names, for PLAIN."""
    if "sasl.username" not in client:
        return client
    login = f'username="{client["sasl.username"]}" password="{client["sasl.password"]}"'
    return {
        **{key: client[key] for key in ("bootstrap.servers", "security.protocol", "sasl.mechanism")},
        "sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": client["ssl.ca.location"],
    }
