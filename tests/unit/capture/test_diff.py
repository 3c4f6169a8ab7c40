"""Only what differs is applied, and what differs can be told without telling a secret."""

from __future__ import annotations

from connectors.debezium.apply import Change, describe, diff


def test_equal_configurations_do_not_differ() -> None:
    assert diff({"a": "1", "database.password": "x"}, {"a": "1", "database.password": "x"}) == ()


def test_added_removed_and_changed_keys_in_order() -> None:
    changes = diff({"a": "1", "b": "2"}, {"b": "3", "c": "4"})
    assert changes == (Change("a", "1", None), Change("b", "2", "3"), Change("c", None, "4"))
    assert [describe(each) for each in changes] == ["a: 1 → (none)", "b: 2 → 3", "c: (none) → 4"]


def test_a_new_password_differs_and_is_not_shown() -> None:
    (change,) = diff({"database.password": "old-secret"}, {"database.password": "new-secret"})
    assert describe(change) == "database.password: changed"
    assert "secret" not in repr(change)
