"""All settings, from `TELLONCE_*` environment variables or the local stack's `.local/tellonce.env`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from connectors import failpoints

Latency = Literal["low", "balanced", "frugal"]

LOCAL_ENV_FILE = Path(".local/tellonce.env")
"""Written by `make up`; the environment wins over it."""


class Settings(BaseSettings):
    """What a process needs to know of its surroundings; frozen, read once at start.

    Secrets never show in a log, a traceback or `repr`, nor in what is said of a setting that is wrong.
    """

    model_config = SettingsConfigDict(
        env_prefix="TELLONCE_",
        env_file=LOCAL_ENV_FILE,
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    database_url: SecretStr = SecretStr("")
    """DSN of a login in role `consumer`: what `tellonce run` uses."""
    admin_database_url: SecretStr = SecretStr("")
    """DSN of `tellonce_owner`: migrations, tenants, imports, dead letters."""
    connect_database_url: SecretStr = SecretStr("")
    """DSN of a login in role `connect`, as Kafka Connect reaches the database to read its WAL."""
    kafka_bootstrap: str = ""
    kafka_options: dict[str, str] = Field(default_factory=dict, repr=False)
    """Further librdkafka settings as a JSON object, such as SASL and TLS; passwords among them."""
    connect_url: str = Field(default="", repr=False)
    """Kafka Connect's REST interface, as http://host:8083; with user and password when it asks for them."""
    latency: Latency = "balanced"
    products: Annotated[tuple[Path, ...], NoDecode] = ()
    """Further product folders, separated as in PATH."""
    accounts: Path | None = None
    """TOML file of the accounts at providers (`connectors.providers.accounts`); none: only in-app messages go out."""
    link_base: str = "http://localhost"
    """What the link of a message begins with; product and subject follow."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int = Field(default=0, ge=0, le=65535)
    """0 takes a free port and logs it: any number of processes on one host."""
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    failpoints: str = ""
    """Where this process is to die, stop or fail (`connectors.failpoints`): for tests of what holds then."""
    failpoints_log: Path | None = None
    """Each strike is a line in this file."""

    @field_validator("products", mode="before")
    @classmethod
    def _split_path(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(Path(part) for part in value.split(os.pathsep) if part)
        return value

    @field_validator("failpoints")
    @classmethod
    def _are_failpoints(cls, value: str) -> str:
        failpoints.parse(value)
        return value
