"""Jars of Apache Kafka and of what runs beside it, fetched once with the Ivy jar that the PySpark wheel carries.

`python -m demo.jars` fetches those of the demonstration, all sets at once.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_sla.cache import cache_folder

KAFKA_VERSION = "4.3.1"
"""The newest set of jars that is complete in Maven Central; a version, never a range."""
_LOG4J_VERSION = "2.25.4"
_EXPORTER_VERSION = "1.0.1"
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that lives for seconds: half the processor time."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched together, with what they need."""

    name: str
    folder: str
    """Name of its folder in the cache."""
    variable: str
    """Environment variable that names a folder in which they already are."""
    size_mb: int
    dependencies: tuple[tuple[str, str, str], ...]
    """Organisation, module, revision: a version, never a range."""
    alone: bool = False
    """These modules only, without what they say that they need."""
    with_tests: tuple[str, ...] = ()
    """Modules whose jar of test classes is fetched, too."""


KAFKA = JarSet(
    f"Apache Kafka {KAFKA_VERSION}",
    f"kafka-{KAFKA_VERSION}",
    "KAFKA_SLA_JARS",
    44,
    (
        ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J_VERSION),
    ),
)
EXPORTER = JarSet(
    f"the JMX exporter {_EXPORTER_VERSION}",
    f"jmx-exporter-{_EXPORTER_VERSION}",
    "KAFKA_SLA_EXPORTER_JARS",
    3,
    (("io.prometheus.jmx", "jmx_prometheus_javaagent", _EXPORTER_VERSION),),
)
"""The Java agent that shows a broker's metrics to Prometheus; only clusters that are asked for exporters need it."""
MIRROR = JarSet(
    f"MirrorMaker {KAFKA_VERSION}",
    f"mirror-{KAFKA_VERSION}",
    "KAFKA_SLA_MIRROR_JARS",
    31,
    (("org.apache.kafka", "connect-mirror", KAFKA_VERSION), ("org.apache.kafka", "connect-runtime", KAFKA_VERSION)),
)
"""Connect and MirrorMaker 2, which copies topics between clusters; used beside Kafka's own jars."""
STREAMS = JarSet(
    f"Kafka Streams {KAFKA_VERSION}",
    f"kafka-streams-{KAFKA_VERSION}",
    "KAFKA_SLA_STREAMS_JARS",
    2,
    (("org.apache.kafka", "kafka-streams", KAFKA_VERSION),),
    alone=True,
)
"""For an application without state, whose stores would need RocksDB; used beside Kafka's own jars."""
SPARK_KAFKA = JarSet(
    "Spark's Kafka connector 4.1.3",
    "spark-kafka-4.1.3",
    "KAFKA_SLA_SPARK_KAFKA_JARS",
    10,
    (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.3"),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
        ("org.apache.kafka", "kafka-clients", "3.9.1"),
        ("org.apache.commons", "commons-pool2", "2.12.1"),
    ),
    alone=True,
)
"""For queries whose checkpoints are looked at. The token provider of 4.1.3 itself is missing in Maven Central."""
ICEBERG_REST = JarSet(
    "Iceberg's REST catalog 1.9.0",
    "iceberg-rest-1.9.0",
    "KAFKA_SLA_ICEBERG_REST_JARS",
    25,
    (
        *(("org.apache.iceberg", f"iceberg-{part}", "1.9.0") for part in ("api", "bundled-guava", "common", "core")),
        *(
            ("org.eclipse.jetty", f"jetty-{part}", "11.0.25")
            for part in ("http", "io", "security", "server", "servlet", "util")
        ),
        ("com.github.ben-manes.caffeine", "caffeine", "2.9.3"),
        ("io.airlift", "aircompressor", "0.27"),
        ("org.apache.httpcomponents.client5", "httpclient5", "5.4.3"),
        ("org.apache.httpcomponents.core5", "httpcore5", "5.3.4"),
        ("org.xerial", "sqlite-jdbc", "3.49.1.0"),
    ),
    alone=True,
    with_tests=("iceberg-core",),
)
"""The server by which Iceberg tests its own clients, beside the jars of Spark: Hadoop, Jackson and Avro are there."""
ICEBERG_SPARK = JarSet(
    "Iceberg's reader for Spark 4.1, 1.11.0",
    "iceberg-spark-1.11.0",
    "KAFKA_SLA_ICEBERG_SPARK_JARS",
    50,
    (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0"),),
    alone=True,
)
"""With which Spark reads the tables as Iceberg's."""
YARN = JarSet(
    "Hadoop YARN 3.4.2",
    "yarn-3.4.2",
    "KAFKA_SLA_YARN_JARS",
    47,
    (
        ("org.apache.hadoop", "hadoop-client-minicluster", "3.4.2"),
        *(("org.bouncycastle", f"bc{part}-jdk18on", "1.78.1") for part in ("pkix", "prov", "util")),
        ("javax.xml.bind", "jaxb-api", "2.3.1"),
    ),
    alone=True,
)
"""The servers of YARN, beside the jars of Spark, which hold Hadoop's clients of the same version."""


class JarsMissing(RuntimeError):
    """Jars could not be fetched; the message carries Ivy's last words."""


def say(text: str) -> None:
    """Progress on standard error, so that standard output stays data."""
    print(text, file=sys.stderr, flush=True)


def java() -> str:
    """The Java program of JAVA_HOME, else of the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if not found:
        raise JarsMissing("Java 17 is needed and no `java` was found: install it, or set JAVA_HOME")
    return found


def jars_folder(jars: JarSet = KAFKA) -> Path:
    """Where the jars are kept: the folder that their variable names, else one in this user's cache, for all clones."""
    named = os.environ.get(jars.variable)
    return Path(named) if named else cache_folder() / jars.folder


def fetch_jars(progress: Say = say, jars: JarSet = KAFKA) -> Path:
    """The folder of the jars, downloaded on first use; it appears whole or not at all."""
    folder = jars_folder(jars)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder), tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        if folder.is_dir():
            return folder
        fresh = Path(temporary, "jars")
        _run_ivy(jars, Path(temporary), fresh, progress)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster, and its jars are as good
                raise
    return folder


_WITH_TESTS = (
    '<artifact name="{name}" type="jar"/><artifact name="{name}" type="test-jar" ext="jar" m:classifier="tests"/>'
)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Whoever wants the same jars meanwhile waits until they are there."""
    path = folder.with_name(f".{folder.name}.lock")
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _ivy_file(jars: JarSet) -> str:
    alone = ' transitive="false"' if jars.alone else ""
    tests = {name: _WITH_TESTS.format(name=name) for name in jars.with_tests}
    wanted = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}"{alone}>{tests.get(name, "")}</dependency>'
        for org, name, rev in jars.dependencies
    )
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
 <info organisation="kafka_sla" module="demo"/>
 <configurations><conf name="default"/></configurations>
 <dependencies defaultconf="default->master,runtime">{wanted}</dependencies></ivy-module>
"""


def _run_ivy(jars: JarSet, work: Path, target: Path, progress: Say) -> None:
    (work / "ivy.xml").write_text(_ivy_file(jars))
    command = [
        java(),
        *_BRIEF,
        "-jar",
        str(_ivy_jar()),
        "-ivy",
        str(work / "ivy.xml"),
        "-cache",
        str(work / "cache"),
        "-types",
        "jar",
        "test-jar",
        "bundle",
        "-confs",
        "default",
        "-retrieve",
        f"{target}/[artifact]-[revision](-[classifier]).[ext]",
    ]
    progress(f"fetching the jars of {jars.name} ({jars.size_mb} MB, once)")
    ivy = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = len(list(target.glob("*.jar"))) if target.is_dir() else 0
    if ivy.returncode or not found:
        raise JarsMissing(
            f"Ivy found {jars.name} not in Maven Central:\n{''.join(ivy.stdout.splitlines(True)[-25:])}"
            f"Check the network, or point {jars.variable} at a folder that holds the jars."
        )


def _ivy_jar() -> Path:
    """Found without importing pyspark, which takes a second."""
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(jar for place in places for jar in Path(place, "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsMissing("no Ivy jar inside pyspark: install this project's requirements (make setup)")
    return found[-1]


def fetch_all(sets: Sequence[JarSet] = (KAFKA, MIRROR, EXPORTER), progress: Say = say) -> None:
    """Those of these sets that are not there yet: the first one alone, as somebody waits for it; then all others."""
    missing = [jars for jars in sets if not jars_folder(jars).is_dir()]
    if missing:
        names, size_mb = ", ".join(jars.name for jars in missing), sum(jars.size_mb for jars in missing)
        progress(f"fetching the jars of {names} ({size_mb} MB, once)")
        first, *others = missing
        fetch_jars(lambda text: None, first)
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda jars: fetch_jars(lambda text: None, jars), others))


if __name__ == "__main__":
    fetch_all()
