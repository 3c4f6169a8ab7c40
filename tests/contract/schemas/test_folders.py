"""The products that ship, the one in the tests, and folders that an installation adds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import orjson
import pytest

from connectors.registry import (
    InvalidProduct,
    builtin_folders,
    check_product,
    check_schemas,
    load_catalogue,
    product_folders,
)
from connectors.settings import Settings
from producers.products.loans.application import Move
from schemas.codec import AVRO_TYPE, JSON_TYPE
from schemas.products.model import Role
from tests.contract.schemas.conftest import Folder

IN_TESTS = Path(__file__).parents[2] / "products"
WORKLOG = IN_TESTS / "worklog"
FOLDERS = [*builtin_folders(), WORKLOG]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_folder_is_valid_and_recorded(folder: Path) -> None:
    assert check_product(folder) == []
    assert check_schemas(folder) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_sample_is_the_same_in_both_forms(folder: Path) -> None:
    loaded = load_catalogue([WORKLOG]).product(folder.name)
    assert set(loaded.samples) == set(loaded.events)
    for event_type, sample in loaded.samples.items():
        contract = loaded.events[event_type]
        as_json = contract.read(orjson.dumps(sample), JSON_TYPE)
        assert contract.read(contract.avro_body(sample), AVRO_TYPE) == as_json
        assert set(as_json) == set(contract.fields)


def test_the_loans_journey_is_what_the_service_announces() -> None:
    loans = load_catalogue().product("loans")
    assert set(loans.events) == set(Move)
    assert loans.product.journey is not None
    assert [step.on for step in loans.product.journey.steps] == [
        Move.START,
        Move.VERIFY_PHONE,
        Move.COMPLETE_CREDIT_CHECK,
        Move.EXPLORE_SAVINGS,
        Move.VIEW_OFFERS,
        Move.SUBMIT_OFFER,
    ]
    assert [step.on for step in loans.product.journey.steps if step.is_immediate] == [Move.SUBMIT_OFFER]
    assert loans.product.role_of(Move.WITHDRAW) is Role.END
    assert loans.product.role_of(Move.REAPPLY) is Role.RESTART
    for move in (Move.SANCTION, Move.DISBURSE, Move.ASSIGN_ADVISOR):
        assert loans.product.role_of(move) is Role.LIFECYCLE


def test_no_loans_event_carries_personal_data() -> None:
    for event_type, contract in load_catalogue().product("loans").events.items():
        assert not {"phone", "email", "name", "address"} & set(contract.fields), event_type


def test_every_template_has_its_german(tmp_path: Path) -> None:
    templates = set(load_catalogue().product("loans").templates)
    english = {path for path in templates if ".en." in path}
    assert english
    assert {path.replace(".en.", ".de.") for path in english} == templates - english


def test_the_real_logs_journey_is_its_order_of_work() -> None:
    worklog = load_catalogue([WORKLOG]).product("worklog")
    assert worklog.product.journey is not None
    numbers = [worklog.samples[step.on]["activity"] for step in worklog.product.journey.steps]
    assert numbers == [1, 3, 5, 6, 4]
    assert worklog.product.role_of("worklog.fraud_assessed") is Role.LIFECYCLE


def test_a_folder_of_products_is_each_of_them(cards: Folder, tmp_path: Path) -> None:
    shutil.copytree(WORKLOG, tmp_path / "worklog")
    (tmp_path / "notes").mkdir()
    assert set(load_catalogue([tmp_path]).products) == {"loans", "cards", "worklog"}
    assert set(load_catalogue([cards.path, WORKLOG]).products) == {"loans", "cards", "worklog"}


def test_a_folder_that_is_no_product_and_has_none_stays_for_its_check(tmp_path: Path) -> None:
    assert product_folders([WORKLOG, IN_TESTS, tmp_path, tmp_path / "nowhere"]) == [
        WORKLOG,
        WORKLOG,
        tmp_path,
        tmp_path / "nowhere",
    ]


def test_the_environment_names_folders(
    cards: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TELLONCE_PRODUCTS", os.pathsep.join([str(cards.path), str(IN_TESTS)]))
    settings = Settings()
    assert settings.products == (cards.path, IN_TESTS)
    assert set(load_catalogue(settings.products).products) == {"loans", "cards", "worklog"}


def test_two_folders_of_one_product_are_refused_with_both_places(cards: Folder, tmp_path: Path) -> None:
    other = tmp_path / "again"
    shutil.copytree(cards.path, other)
    with pytest.raises(InvalidProduct) as caught:
        load_catalogue([cards.path, other])
    assert str(caught.value) == f"{other}: product cards is in {cards.path} already; a product has one folder"


def test_a_product_that_ships_cannot_be_replaced(tmp_path: Path) -> None:
    (builtin,) = builtin_folders()
    shutil.copytree(builtin, tmp_path / "mine")
    with pytest.raises(InvalidProduct, match=r"mine: product loans is in .*/loans already"):
        load_catalogue([tmp_path / "mine"])


def test_a_folder_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidProduct, match="nowhere is not a folder"):
        load_catalogue([tmp_path / "nowhere"])


def test_an_invalid_folder_stops_the_start_with_all_its_problems(cards: Folder) -> None:
    cards.edit("product.yaml", "after: 30m", "after: soon")
    cards.remove("samples/closed.json")
    with pytest.raises(InvalidProduct) as caught:
        load_catalogue([cards.path])
    assert [(Path(problem.file).name, problem.line) for problem in caught.value.problems] == [
        ("product.yaml", 5),
        ("closed.json", 0),
    ]
