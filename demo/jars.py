"""Apache Kafka's jars, fetched once with the Ivy jar that the PySpark wheel carries. Knows no broker and no test."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

KAFKA_VERSION = "4.3.1"
"""The newest set of jars that is complete in Maven Central; a version, never a range."""
_LOG4J_VERSION = "2.25.4"
_IVY_FILE = f"""<ivy-module version="2.0"><info organisation="kafka_sla" module="broker"/>
 <configurations><conf name="default"/></configurations>
 <dependencies defaultconf="default->master,runtime">
  <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}"/>
  <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="{_LOG4J_VERSION}"/>
 </dependencies></ivy-module>
"""

Say = Callable[[str], None]


class JarsMissing(RuntimeError):
    """Kafka's jars could not be fetched; the message carries Ivy's last words."""


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


def jars_folder() -> Path:
    """Where the jars are kept: KAFKA_SLA_JARS, else `.cache/kafka-<version>` beside this package."""
    default = Path(__file__).resolve().parents[1] / ".cache" / f"kafka-{KAFKA_VERSION}"
    return Path(os.environ.get("KAFKA_SLA_JARS", default))


def fetch_jars(progress: Say = say) -> Path:
    """The folder of Kafka's jars, downloaded on first use; it appears whole or not at all."""
    folder = jars_folder()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        fresh = Path(temporary, "jars")
        _run_ivy(Path(temporary), fresh, progress)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster, and its jars are as good
                raise
    return folder


def _run_ivy(work: Path, target: Path, progress: Say) -> None:
    (work / "ivy.xml").write_text(_IVY_FILE)
    command = [java(), "-jar", str(_ivy_jar()), "-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache"),
               "-types", "jar", "bundle", "-confs", "default",
               "-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"]  # fmt: skip
    progress(f"fetching the jars of Apache Kafka {KAFKA_VERSION} (44 MB, once)")
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            lines.append(line)
            if "[SUCCESSFUL ]" in line:
                progress(f"  {line.split()[2].rpartition('!')[2]}")
    jars = len(list(target.glob("*.jar"))) if target.is_dir() else 0
    if ivy.returncode or not jars:
        raise JarsMissing(f"Ivy found no Apache Kafka {KAFKA_VERSION} in Maven Central:\n{''.join(lines[-25:])}"
                          "Check the network, or point KAFKA_SLA_JARS at a folder that holds the jars.")  # fmt: skip
    progress(f"fetched {jars} jars")


def _ivy_jar() -> Path:
    """Found without importing pyspark, which takes a second."""
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(jar for place in places for jar in Path(place, "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsMissing("no Ivy jar inside pyspark: install this project's requirements (make setup)")
    return found[-1]
