"""Kinds of single values in the configuration: pydantic types with their JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from kafka_sla.config.maintenance import EVERY, EVERY_ALLOWED, parse_every
from kafka_sla.network.addresses import split_address
from kafka_sla.text.durations import DURATION, DURATION_ALLOWED, OBJECTIVE_ALLOWED, parse_duration, parse_objective
from kafka_sla.text.name_patterns import PATTERN_ALLOWED, parse_pattern
from kafka_sla.text.periods import PERIOD, PERIOD_ALLOWED, parse_period
from kafka_sla.text.timestamps import INSTANT_ALLOWED, parse_instant


@dataclass(frozen=True, slots=True)
class Text:
    """Text that must match a regex, and pass a parser where one is given; it stays text."""

    allowed: str
    regex: str | None = None
    parse: Callable[[str], object] | None = None

    def check(self, text: str) -> str:
        if self.parse:
            self.parse(text)
        elif not re.fullmatch(self.regex or "", text):
            raise ValueError(f"not allowed here; allowed: {self.allowed}")
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        pattern = {"pattern": f"^{self.regex.strip('^$')}$"} if self.regex else {}
        return {"type": "string", **pattern, "description": self.allowed}


def _time_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(
            "not a time zone; allowed: an IANA name such as UTC, Europe/Berlin or America/New_York"
        ) from error


def _web_address(regex: str, allowed: str) -> Text:
    """Text that matches the regex and is an address that can be opened."""

    def parse(text: str) -> None:
        if not re.fullmatch(regex, text):
            raise ValueError(f"not allowed here; allowed: {allowed}")
        try:
            split_address(text)
        except ValueError as error:
            raise ValueError(f"not a web address ({error}); allowed: {allowed}") from error

    return Text(allowed, regex, parse)


def _broker_id(value: object) -> int:
    """YAML has numbers as keys, JSON has not."""
    if isinstance(value, int | str) and not isinstance(value, bool) and re.fullmatch(r"\d{1,9}", str(value)):
        return int(value)
    raise ValueError("not a broker id; allowed: a whole number, such as 1")


def _sample_every(value: object) -> int:
    if not 1_000 <= (every_ms := parse_duration(value)) <= 60_000:
        raise ValueError("out of range; allowed: 1s to 1m, such as 5s")
    return every_ms


_NEVER = -1


def _duration_or_never(value: object) -> int:
    if isinstance(value, int) and value == _NEVER:
        return _NEVER
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{error}; or {_NEVER}, without quotes, for never") from None


_NO_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_LINE = rf"[^ {_NO_CONTROL}](?:[^{_NO_CONTROL}]{{0,98}}[^ {_NO_CONTROL}])?"
_LINE_ALLOWED = "one line of 100 characters at most, without blanks around it"
_ADDRESS_ALLOWED = "between slashes nothing that is empty, . or .."
RESERVED = (
    *("burns", "catch-up", "chain", "exclusions", "partitions", "readers", "status", "timeline", "timeline.csv"),
    "windows",
)
"""What the API has below the address of an SLA."""


def _address_part(name: str) -> None:
    if {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"not a name that its page's address can hold; allowed: {_ADDRESS_ALLOWED}")


def _page_name(name: str) -> None:
    if not re.fullmatch(_LINE, name):
        raise ValueError(f"not allowed here; allowed: {_LINE_ALLOWED}")
    _address_part(name)


def _team_name(name: str) -> None:
    if name:
        _page_name(name)


def _sla_name(name: str) -> None:
    _page_name(name)
    if "/" in name and (last := name.rpartition("/")[2]) in RESERVED:
        raise ValueError(f"an address of the API: it ends in /{last}; allowed: any other end")


_PERCENT = {"type": "string", "pattern": r"^\s*\d{1,3}(\.\d{1,9})?\s*%\s*$"}
_SHARE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_DURATION_SCHEMA = {"type": "string", "pattern": DURATION, "description": DURATION_ALLOWED}
_PERIOD_SCHEMA = {"type": "string", "pattern": PERIOD, "description": PERIOD_ALLOWED}
_OBJECTIVE_SCHEMA = {"anyOf": [_PERCENT, _SHARE], "description": OBJECTIVE_ALLOWED}

_DURATION_OR_NEVER_SCHEMA = {"anyOf": [_DURATION_SCHEMA, {"const": _NEVER, "type": "integer"}]}

Duration = Annotated[int, BeforeValidator(parse_duration), WithJsonSchema(_DURATION_SCHEMA)]
DurationOrNever = Annotated[int, BeforeValidator(_duration_or_never), WithJsonSchema(_DURATION_OR_NEVER_SCHEMA)]
SampleEvery = Annotated[int, BeforeValidator(_sample_every), WithJsonSchema(_DURATION_SCHEMA)]
Objective = Annotated[float, BeforeValidator(parse_objective), WithJsonSchema(_OBJECTIVE_SCHEMA)]
ObjectivePeriod = Annotated[str, BeforeValidator(parse_period), WithJsonSchema(_PERIOD_SCHEMA)]
Pattern = Annotated[str, Text(PATTERN_ALLOWED, parse=lambda text: parse_pattern(text.removeprefix("!")))]
Names = Annotated[list[Pattern], Field(min_length=1)]
TimeZone = Annotated[str, Text("an IANA time zone, such as Europe/Berlin", parse=_time_zone)]
Instant = Annotated[str, Text(INSTANT_ALLOWED, parse=parse_instant)]
Every = Annotated[str, Text(EVERY_ALLOWED, EVERY, parse_every)]
ConnectionId = Annotated[
    str,
    Text(
        "the id of an Airflow connection (letters, digits, _ . -), never an address or a password",
        r"[A-Za-z0-9_.-]{1,200}",
    ),
]
ClusterName = Annotated[str, Text("letters, digits, _ . -, 100 characters at most", r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")]
Name = Annotated[str, Text(_LINE_ALLOWED, _LINE)]
SlaName = Annotated[
    str, Text(f"{_LINE_ALLOWED}; {_ADDRESS_ALLOWED}, and not /{', /'.join(RESERVED)} at the end", _LINE, _sla_name)
]
TeamName = Annotated[str, Text(f"{_LINE_ALLOWED}; {_ADDRESS_ALLOWED}", f"(?:{_LINE})?", _team_name)]
_MAIL_PART = rf"[^@\s.,:;<>()\[\]\\\"{_NO_CONTROL}]+"
Email = Annotated[
    str,
    Text(
        "an e-mail address, such as team@example.com",
        rf"{_MAIL_PART}(?:\.{_MAIL_PART})*@{_MAIL_PART}(?:\.{_MAIL_PART})*",
    ),
]
ClassPath = Annotated[
    str,
    Text(
        "a dotted class path, such as airflow.providers.slack.notifications.slack.SlackNotifier",
        r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+",
    ),
]
WebAddress = Annotated[
    str, _web_address(r"https?://[^\s@]+", "the address of the Airflow UI, such as https://airflow.example.com")
]
Link = Annotated[str, _web_address(r"https?://[^\s@]+", "a web address, such as https://wiki.example.com/payments")]
ClockTime = Annotated[str, Text("a time of day with two digits each, such as 07:00", r"([01]\d|2[0-3]):[0-5]\d")]
TopicName = Annotated[str, Text("a topic: letters, digits, _ . -, 249 characters at most", r"[A-Za-z0-9._-]{1,249}")]
GroupName = Annotated[
    str,
    Text(
        "the name of one consumer group, not a pattern: 255 characters at most, no * or ?, no ! or / first",
        rf"[^ !/*?{_NO_CONTROL}](?:[^*?{_NO_CONTROL}]{{0,253}}[^ *?{_NO_CONTROL}])?",
    ),
]
BrokerId = Annotated[int | str, BeforeValidator(_broker_id), WithJsonSchema({"type": "string", "pattern": r"^\d+$"})]
HttpAddress = Annotated[
    str,
    _web_address(r"https?://[^\s@/]+(/[^\s]*)?", "an address without login, such as http://broker-1:9404/metrics"),
]


def valid(parse: Callable[..., Any], *given: Any) -> Any:
    """The parsed value, or None where the value is wrong by itself: the schema names that mistake."""
    try:
        return parse(*given)
    except (ValueError, TypeError, LookupError, OSError, AttributeError):
        return None


def mapping(value: Any) -> dict[str, Any]:
    """The mapping; what is none counts as an empty one: the schema names that mistake, too."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The same of each entry of a list; none where there is no list."""
    return [mapping(entry) for entry in value] if isinstance(value, list) else []
