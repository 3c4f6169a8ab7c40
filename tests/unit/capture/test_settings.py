"""Settings come from the environment, and their secrets go nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from connectors.settings import Settings

WITH_SECRETS = {
    "TELLONCE_DATABASE_URL": "postgresql://u:s3cret@db/tellonce",
    "TELLONCE_ADMIN_DATABASE_URL": "postgresql://o:s3cret@db/tellonce",
    "TELLONCE_CONNECT_DATABASE_URL": "postgresql://c:s3cret@db/tellonce",
    "TELLONCE_CONNECT_URL": "http://ops:s3cret@connect:8083",
    "TELLONCE_KAFKA_OPTIONS": '{"sasl.username": "u", "sasl.password": "s3cret"}',
}


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No file of a local stack, and nothing of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TELLONCE_")]:
        monkeypatch.delenv(name)


def test_secrets_are_read_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in WITH_SECRETS.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.kafka_options["sasl.password"] == "s3cret"
    assert settings.database_url.get_secret_value() == WITH_SECRETS["TELLONCE_DATABASE_URL"]
    assert "s3cret" not in f"{settings!r} {settings}"


def test_a_wrong_setting_is_named_and_its_value_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLONCE_KAFKA_OPTIONS", '{"sasl.password": ["s3cret"]}')
    with pytest.raises(ValidationError, match="kafka_options") as raised:
        Settings()
    assert "s3cret" not in str(raised.value)


def test_product_folders_are_separated_as_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLONCE_PRODUCTS", os.pathsep.join(("/a/shop", "", "b")))
    assert Settings().products == (Path("/a/shop"), Path("b"))


def test_the_environment_wins_over_the_local_stacks_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".local").mkdir()
    Path(".local/tellonce.env").write_text(
        "TELLONCE_LATENCY=frugal\nTELLONCE_KAFKA_BOOTSTRAP=localhost:9092\nTELLONCE_LOG_LEVEL=\n"
    )
    monkeypatch.setenv("TELLONCE_LATENCY", "low")
    settings = Settings()
    assert (settings.latency, settings.kafka_bootstrap, settings.log_level) == (
        "low",
        "localhost:9092",
        "info",
    )
