"""Where tokens come from, and when a new one is issued."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest
import tenacity.nap
from kafka.net.sasl.msk import AwsMskIamClient

from demo.broker import free_ports
from demo.token_server import TokenServer
from kafka_sla.sources.kafka.login.oauth_tokens import TokenProvider
from kafka_sla.sources.kafka.login.sasl import login
from kafka_sla.sources.kafka.login.unavailable import LoginUnavailable

SECURED = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "bootstrap.servers": ["b.example.com:1"]}


def provider(**keys: object) -> TokenProvider:
    made = login({**SECURED, **{key.replace("__", "."): value for key, value in keys.items()}})
    assert made["sasl_mechanism"] == "OAUTHBEARER"
    found = made["sasl_oauth_token_provider"]
    assert isinstance(found, TokenProvider)
    return found


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer() as server:
        yield server


def test_one_token_serves_all_logins_of_its_life(tokens: TokenServer) -> None:
    tokens.life_s = 3600
    found = provider(**tokens.client())

    assert {found.token() for _ in range(5)} == {tokens.issued[0]}
    assert len(tokens.issued) == 1


def test_a_token_is_renewed_before_it_expires(tokens: TokenServer) -> None:
    tokens.life_s = 0.5
    found = provider(**tokens.client())
    first = found.token()

    time.sleep(0.4)

    assert found.token() == tokens.issued[1] != first


def test_scope_and_extensions_go_where_they_belong(tokens: TokenServer) -> None:
    more = {"scope": "kafka:read", "extensions": "logicalCluster=lkc-1,identityPoolId=pool-2"}
    found = provider(**tokens.client(), **{f"sasl.oauthbearer.{key}": value for key, value in more.items()})

    assert found.token() == tokens.issued[0]
    assert found.extensions() == {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}
    assert tokens.scopes == ["kafka:read"]


def test_an_endpoint_that_is_busy_for_a_moment_costs_a_moment_whatever_it_asks_for(
    tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=waits.append))
    tokens.failures.extend([503, 429, 500])

    assert provider(**tokens.client()).token() == tokens.issued[0]
    assert 0 < sum(waits) < 3


@pytest.mark.parametrize("decodes", [False, True])
def test_a_secret_may_hold_what_rfc_6749_wants_encoded_whether_or_not_the_endpoint_does(decodes: bool) -> None:
    with TokenServer(client_id="kafka-sla@eu.prod/2", secret="p+ss%2Fw:rd €&=") as tokens:
        tokens.decodes = decodes

        assert provider(**tokens.client()).token() == tokens.issued[0]


def test_an_endpoint_that_is_not_at_that_address_is_what_is_reported(tokens: TokenServer) -> None:
    tokens.failures.append(404)

    with pytest.raises(
        LoginUnavailable, match=r"\(404 temporarily_unavailable\); check sasl.oauthbearer.token.endpoint"
    ):
        provider(**tokens.client()).token()


def test_a_wrong_secret_is_reported_without_the_secret(tokens: TokenServer) -> None:
    with pytest.raises(LoginUnavailable) as raised:
        provider(**{**tokens.client(), "sasl.oauthbearer.client.secret": "not-that-one"}).token()

    assert "issued no token to client 'kafka-sla' (401 invalid_client); check" in raised.value.message
    assert "not-that-one" not in str(raised.value)


def test_an_endpoint_that_nobody_serves_is_named() -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}/token"

    with pytest.raises(LoginUnavailable, match=r"endpoint at 127\.0\.0\.1: no answer \(ConnectionError\); check"):
        provider(**{**TokenServer().client(), "sasl.oauthbearer.token.endpoint.url": url}).token()


def test_an_own_function_is_called_as_confluent_kafka_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_tokens.py").write_text(
        "import time\ndef issue(config):\n    return f'token-for-{config}', time.time() + 60, 'me', {'pool': 'p-1'}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = provider(oauth_cb="acme_tokens.issue", **{"sasl.oauthbearer.config": "billing"})

    assert (found.token(), found.extensions()) == ("token-for-billing", {"pool": "p-1"})


@pytest.mark.parametrize("path", ["acme_nowhere.issue", "time.no_such_function", "time.time", "nodots"])
def test_an_own_function_that_fails_is_named(path: str) -> None:
    with pytest.raises(LoginUnavailable, match=rf"oauth_cb {path} returned no token \(\w+\)"):
        provider(oauth_cb=path).token()


MSK = [
    "b-1.orders.abcde1.c2.kafka.eu-west-1.amazonaws.com:9098",
    "b-2.orders.abcde1.c2.kafka.eu-west-1.amazonaws.com:9098",
]
EXAMPLE = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
"""The credentials of AWS's published examples of signatures."""


def test_the_key_that_signs_is_the_one_that_aws_publishes_for_its_example() -> None:
    client = AwsMskIamClient("kafka.us-east-1.amazonaws.com", *EXAMPLE, "us-east-1")
    client.service, client.datestamp = "iam", "20150830"

    assert client._signing_key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


@pytest.mark.parametrize("mechanism", ["AWS_MSK_IAM", "OAUTHBEARER"])
@pytest.mark.parametrize("session_token", [None, "FwoGZXIvYXdzEXAMPLE//////////wEaDA=="])
def test_brokers_of_msk_get_a_signed_request_of_their_region(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, session_token: str | None
) -> None:
    """Signed by AWS's library, and signed again by kafka-python's own implementation: the same signature."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", EXAMPLE[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", EXAMPLE[1])
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    if session_token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", session_token)

    text = provider(**{"sasl.mechanism": mechanism, "bootstrap.servers": MSK}).token()

    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    sent = dict(parse_qsl(url.query))
    again = AwsMskIamClient("kafka.eu-west-1.amazonaws.com", *EXAMPLE, "eu-west-1", session_token)
    again.timestamp, again.datestamp = sent["X-Amz-Date"], sent["X-Amz-Date"][:8]
    assert (url.hostname, sent["Action"]) == ("kafka.eu-west-1.amazonaws.com", "kafka-cluster:Connect")
    assert sent["X-Amz-Signature"] in again.first_message().decode()
    assert EXAMPLE[1] not in url.geturl()


def test_without_aws_credentials_the_ways_to_give_them_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    with pytest.raises(LoginUnavailable, match=r"no AWS credentials were found for MSK in eu-west-1.*AWS_PROFILE"):
        provider(**{"sasl.mechanism": "AWS_MSK_IAM", "bootstrap.servers": MSK}).token()
