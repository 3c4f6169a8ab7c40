"""Rows are read with where they stand; what is not a row says so with file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from producers.importer.read import InvalidLogError, Problem, Row, read_rows
from producers.importer.spec import ImportSpec, SpecError, type_map


def spec(path: Path, /, **more: object) -> ImportSpec:
    given: dict[str, object] = {
        "path": path,
        "tenant": "a",
        "product": "worklog",
        "subject_column": "Case",
        "type_column": "Activity",
        "time_column": "At",
    }
    return ImportSpec(**(given | more))  # type: ignore[arg-type]


def log(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, /, **more: object) -> list[Row | Problem]:
    return list(read_rows(spec(path, **more)))


def test_csv_rows_come_with_their_first_line_whatever_is_quoted(tmp_path: Path) -> None:
    path = log(tmp_path, '\ufeffAt,Case,Note,Activity\n1,c1,"two\nlines",x\n\n2,c2,"a, b",y\n')
    assert read(path) == [
        Row(2, {"Case": "c1", "At": "1", "Activity": "x"}),
        Row(5, {"Case": "c2", "At": "2", "Activity": "y"}),
    ]


def test_json_lines_keep_their_types_and_lack_what_they_lack(tmp_path: Path) -> None:
    path = log(tmp_path, '{"Case": 7, "At": 1.5, "more": []}\n\n', "log.jsonl")
    assert read(path) == [Row(1, {"Case": 7, "At": 1.5, "Activity": None})]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("Case,At\n", ":1:Activity", "no such column; the header has Case, At"),
        ("", ":1:Case", "no such column; the header has nothing"),
        ("Case,At,Activity\n1,2\n", ":2:-", "2 cells under a header of 3"),
        ('Case,At,Activity\n1,"2\n', ":2:-", "not CSV"),
        (b"Case,At,Activity\n\xff,1,2\n", ":1:-", "not UTF-8"),
    ],
)
def test_what_is_not_a_csv_row_says_where(
    tmp_path: Path, text: str | bytes, where: str, message: str
) -> None:
    problem = read(log(tmp_path, text))[0]
    assert isinstance(problem, Problem)
    assert where in str(problem)
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('{"Case": 1}\n{"Case": \n', ":2:", "not JSON"),
        ('{"Case": 1}\n[1]\n', ":2:1", "every line is one object"),
        (b"\xff\n", ":1:-", "not UTF-8"),
    ],
)
def test_what_is_not_a_json_row_says_where(
    tmp_path: Path, text: str | bytes, where: str, message: str
) -> None:
    problem = read(log(tmp_path, text, "log.jsonl"))[-1]
    assert isinstance(problem, Problem)
    assert where in str(problem)
    assert message in problem.message


def test_a_long_list_of_problems_is_cut_and_counted() -> None:
    error = InvalidLogError([Problem("log.csv", 2, "At", "not a time")], more=1200)
    assert str(error) == "log.csv:2:At: not a time\n… and 1,200 more"


def test_the_imports_name_is_the_files_unless_given(tmp_path: Path) -> None:
    assert spec(tmp_path / "bpi_12_w.csv").name == "bpi_12_w"
    assert spec(tmp_path / "bpi_12_w.csv", import_id="first").name == "first"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"event_type": "x"}, "either --type-column"),
        ({"type_column": None}, "either --type-column"),
        ({"type_column": None, "event_type": "x", "type_map": {"1": "x"}}, "give the column too"),
        ({"import_id": "a b"}, "import id"),
        ({"path": Path("log.txt")}, "say --format"),
    ],
)
def test_a_contradictory_import_is_refused(tmp_path: Path, more: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec(tmp_path / "log.csv", **more)


def test_the_type_map_is_pairs() -> None:
    assert type_map("1=worklog.lead_handled, a=b=worklog.x") == {
        "1": "worklog.lead_handled",
        "a=b": "worklog.x",
    }


@pytest.mark.parametrize("text", ["1", "=x", "1=", "1=x,1=y"])
def test_a_bad_type_map_names_the_pair(text: str) -> None:
    with pytest.raises(SpecError, match="--type-map"):
        type_map(text)
