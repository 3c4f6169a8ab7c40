"""Every row is judged before anything is written: what is wrong says where and how to mend it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from producers.importer.plan import MAX_PROBLEMS, Contract, PlannedEvent, digest, plan
from producers.importer.read import InvalidLogError
from producers.importer.spec import ImportSpec, SpecError


class Handled:
    """A contract with a required number and an optional remark."""

    fields: Mapping[str, object] = {
        "amount": "int",
        "remark": ["null", "string"],
        "mount": ["null", "string"],
    }

    def body(self, payload: Mapping[str, object]) -> bytes:
        if not payload.get("amount"):
            raise ValueError("field amount: expected int, got nothing")
        return json.dumps(payload).encode()


class Bare:
    """A contract without fields."""

    fields: Mapping[str, object] = {}

    def body(self, payload: Mapping[str, object]) -> bytes:
        return json.dumps(payload).encode()


CONTRACTS: dict[str, Contract] = {"worklog.handled": Handled(), "worklog.called": Bare()}
AT = datetime(2011, 10, 1, 19, 45, 13, tzinfo=UTC)
HEADER = "Case,Activity,At,Amount,Note\n"


def planned(folder: Path, rows: str, **more: object) -> list[PlannedEvent]:
    path = folder / "log.csv"
    path.write_text(HEADER + rows)
    given: dict[str, object] = {
        "path": path,
        "tenant": "a",
        "product": "worklog",
        "subject_column": "Case",
        "type_column": "Activity",
        "time_column": "At",
        "type_map": {"1": "worklog.handled", "5": "worklog.called"},
        "fields": {"amount": "Amount", "remark": "Note"},
    }
    return plan(ImportSpec(**(given | more)), CONTRACTS)  # type: ignore[arg-type]


def test_a_row_becomes_the_event_its_contract_asks_for(tmp_path: Path) -> None:
    rows = "c1,1,2011-10-01 19:45:13,7,\nc1,5,2011-10-01 19:45:13,x,y\n"
    assert planned(tmp_path, rows) == [
        PlannedEvent(AT, "c1", "worklog.handled", b'{"amount": 7, "remark": null}'),
        PlannedEvent(AT, "c1", "worklog.called", b"{}"),
    ]


def test_without_a_map_the_column_holds_event_types(tmp_path: Path) -> None:
    (event,) = planned(tmp_path, "c1,worklog.called,2011-10-01,,\n", type_map={}, fields={})
    assert event.event_type == "worklog.called"


def test_one_type_may_stand_for_every_row(tmp_path: Path) -> None:
    (event,) = planned(
        tmp_path,
        "c1,,2011-10-01,,\n",
        type_column=None,
        type_map={},
        event_type="worklog.called",
        fields={},
    )
    assert event.event_type == "worklog.called"


@pytest.mark.parametrize(
    ("row", "where", "message"),
    [
        (",1,2011-10-01,1,", ":2:Case: ", "every row needs one"),
        ("a:b,1,2011-10-01,1,", ":2:Case: ", "no ':'"),
        ("a\0b,1,2011-10-01,1,", ":2:Case: ", "no NUL"),
        (f"{'x' * 129},1,2011-10-01,1,", ":2:Case: ", "at most 128"),
        ("c1,9,2011-10-01,1,", ":2:Activity: ", "add 9=<event type>"),
        ("c1,1,first of May,1,", ":2:At: ", "is not a time"),
        ("c1,1,2011-10-01,many,", ":2:Amount: ", "expected a whole number"),
    ],
)
def test_a_bad_row_says_file_line_column_and_how_to_mend_it(
    tmp_path: Path, row: str, where: str, message: str
) -> None:
    with pytest.raises(InvalidLogError) as error:
        planned(tmp_path, row + "\n")
    assert where in str(error.value)
    assert "log.csv" in str(error.value)
    assert message in str(error.value)


def test_what_the_contract_refuses_is_told_of_the_column(tmp_path: Path) -> None:
    with pytest.raises(InvalidLogError, match=r":2:-: worklog.handled: field amount"):
        planned(tmp_path, "c1,1,2011-10-01,,\n", fields={"remark": "Note"})


def test_the_column_is_that_of_the_whole_field_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidLogError, match=r":2:Amount: worklog.handled: field amount"):
        planned(tmp_path, "c1,1,2011-10-01,0,\n", fields={"mount": "Note", "amount": "Amount"})


def test_many_problems_are_cut_and_counted(tmp_path: Path) -> None:
    with pytest.raises(InvalidLogError) as error:
        planned(tmp_path, "c1,9,2011-10-01,1,\n" * (MAX_PROBLEMS + 7))
    assert len(error.value.problems) == MAX_PROBLEMS
    assert error.value.more == 7


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"type_map": {"1": "worklog.hndled"}}, "no event type 'worklog.hndled'"),
        ({"fields": {"amuont": "Amount"}}, "--field amuont"),
    ],
)
def test_options_that_do_not_fit_the_product_are_refused(
    tmp_path: Path, more: dict[str, object], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        planned(tmp_path, "", **more)


def test_the_digest_tells_rows_apart_and_not_files() -> None:
    one = PlannedEvent(AT, "c1", "worklog.called", b"{}")
    other = PlannedEvent(AT, "c2", "worklog.called", b"{}")
    assert digest([one, other]) == digest((one, other))
    assert len({digest([one]), digest([other]), digest([one, other]), digest([other, one])}) == 4
