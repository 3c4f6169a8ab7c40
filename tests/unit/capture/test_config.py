"""The connector's configuration: exactly these keys and values, and never a password where people look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from connectors.debezium.config import HEADERS, HIDDEN, ConnectorConfig, Database, visible
from connectors.settings import Latency, Settings

GOLDEN = Path(__file__).parent / "golden" / "connector.json"
PASSWORD = "correct horse/battery"
DSN = "postgresql://tellonce_connect:correct%20horse%2Fbattery@db.example:6543/tellonce?sslmode=verify-full"


def config(latency: Latency = "balanced") -> ConnectorConfig:
    return ConnectorConfig(database=Database.from_dsn(DSN), latency=latency)


def test_renders_to_what_was_reviewed() -> None:
    assert visible(config().render()) == json.loads(GOLDEN.read_text())


def test_equal_configurations_render_equally() -> None:
    assert config().render() == config().render()


@pytest.mark.parametrize(("latency", "poll"), [("low", "5"), ("balanced", "10"), ("frugal", "50")])
def test_a_latency_profile_is_a_poll_interval_and_nothing_else(latency: Latency, poll: str) -> None:
    rendered = config(latency).render()
    assert rendered.pop("poll.interval.ms") == poll
    balanced = config().render()
    del balanced["poll.interval.ms"]
    assert rendered == balanced


def test_headers_are_those_of_the_envelope() -> None:
    assert set(HEADERS.values()) == {
        *("ce_id", "ce_type", "ce_source", "ce_subject", "ce_time", "ce_tenant"),
        *("content-type", "traceparent", "recorded_at"),
    }


def test_the_password_goes_to_connect_and_nowhere_else() -> None:
    made = config()
    rendered = made.render()
    assert rendered["database.password"] == PASSWORD
    shown = visible(rendered)
    assert shown["database.password"] == HIDDEN
    for text in (repr(made), str(made), made.model_dump_json(), json.dumps(shown)):
        assert PASSWORD not in text


def test_a_reference_to_a_secret_is_no_secret() -> None:
    reference = "${file:/run/secrets/connect:password}"
    database = Database(host="db", user="u", name="n", password=SecretStr(reference))
    assert visible(database.render())["database.password"] == reference


@pytest.mark.parametrize("password", ["${", "${horse battery", "${a}", "${file:x}y"])
def test_a_password_that_begins_like_a_reference_is_a_secret(password: str) -> None:
    database = Database(host="db", user="u", name="n", password=SecretStr(password))
    assert visible(database.render())["database.password"] == HIDDEN


def test_every_value_is_text() -> None:
    assert all(isinstance(value, str) for value in config().render().values())


@pytest.mark.parametrize(
    ("dsn", "lacks"),
    [
        ("postgresql://u:secret@/db", "host"),
        ("postgresql://h/db", "user, password"),
        ("host=h user=u password=secret", "dbname"),
        ("", "host, user, password, dbname"),
    ],
)
def test_an_incomplete_address_says_what_is_missing(dsn: str, lacks: str) -> None:
    with pytest.raises(ValueError, match=f"lacks {lacks}; set TELLONCE_CONNECT_DATABASE_URL") as raised:
        Database.from_dsn(dsn)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("dsn", "why"),
    [
        ("postgresql//u:secret@h/db", "TELLONCE_CONNECT_DATABASE_URL is no database address: neither"),
        ("postgresql://u:secret@h:here/db", "port 'here'; the connector reads one host"),
        ("postgresql://u:secret@h:1,i:2/db", "port '1,2'; the connector reads one host"),
    ],
)
def test_what_is_no_address_is_refused_and_not_shown(dsn: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        Database.from_dsn(dsn)
    assert "secret" not in str(raised.value)


def test_settings_give_address_and_profile() -> None:
    settings = Settings(connect_database_url=SecretStr(DSN), latency="frugal")
    made = ConnectorConfig.from_settings(settings)
    assert (made.database.host, made.database.port, made.database.name) == ("db.example", 6543, "tellonce")
    assert (made.database.sslmode, made.latency) == ("verify-full", "frugal")


def test_another_cell_has_another_name_slot_and_heartbeat() -> None:
    cell = ConnectorConfig(database=Database.from_dsn(DSN), name="cell-2", slot="cell_2")
    rendered = cell.render()
    assert (rendered["topic.prefix"], rendered["slot.name"]) == ("cell-2", "cell_2")
    assert rendered["predicates.is_outbox.pattern"] == r"cell\-2\.platform\.outbox"
    assert [topic.name for topic in cell.own_topics] == ["__debezium-heartbeat.cell-2"]


@pytest.mark.parametrize("slot", ["Tellonce", "a-b", "", "x" * 64])
def test_a_slot_name_that_postgres_refuses_is_refused_here(slot: str) -> None:
    with pytest.raises(ValidationError):
        ConnectorConfig(database=Database.from_dsn(DSN), slot=slot)
