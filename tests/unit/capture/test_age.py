"""Capture's age: the time of the newest mark that the slot has confirmed."""

from __future__ import annotations

from connectors.debezium.slot import CaptureAge


def test_nothing_marked_is_no_age() -> None:
    assert CaptureAge().age(100, 5.0) == 0


def test_it_is_that_of_the_newest_mark_confirmed() -> None:
    age = CaptureAge()
    for second, position in enumerate([10, 20, 30, 40]):
        age.mark(position, float(second))
    assert age.age(35, 4.0) == 2.0
    assert age.age(40, 4.0) == 1.0


def test_it_grows_while_nothing_is_confirmed() -> None:
    age = CaptureAge()
    age.mark(10, 0.0)
    assert age.age(10, 0.5) == 0.5
    age.mark(20, 1.0)
    assert age.age(15, 9.0) == 9.0


def test_before_the_first_confirmation_it_is_the_wait_for_it() -> None:
    age = CaptureAge()
    age.mark(10, 2.0)
    age.mark(20, 3.0)
    assert age.age(5, 6.0) == 4.0


def test_without_a_slot_nothing_is_confirmed_any_more() -> None:
    age = CaptureAge()
    age.mark(10, 0.0)
    age.age(10, 0.0)
    age.mark(20, 1.0)
    assert age.age(None, 8.0) == 8.0
