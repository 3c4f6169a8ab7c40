"""What was polled: handed out in order, read ahead at most once, forgotten when a position moves."""

from __future__ import annotations

from collections.abc import Sequence

from consumers.runtime.in_hand import InHand
from consumers.runtime.records import Dead, Read, Record
from schemas.states import DeadReason


def record(partition: int, offset: int) -> Record:
    return Record("events.loans", partition, offset, None, (), None)


def places(batch: Sequence[Read | Dead]) -> list[tuple[int, int]]:
    return [(item.record.partition, item.record.offset) for item in batch]


class Reader:
    """Reads everything as dead, and counts how often."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __call__(self, records: Sequence[Record]) -> list[Read | Dead]:
        self.read.append(len(records))
        return [Dead(each, DeadReason.EMPTY, "") for each in records]


def test_batches_come_in_order_and_at_most_so_large() -> None:
    polled = [record(0, offset) for offset in range(5)]
    hand = InHand(Reader(), polled, limit=2)
    taken = [places(hand.take()) for _ in range(4)]
    assert taken == [[(0, 0), (0, 1)], [(0, 2), (0, 3)], [(0, 4)], []]


def test_reading_ahead_reads_the_next_batch_once() -> None:
    reader = Reader()
    hand = InHand(reader, [record(0, offset) for offset in range(4)], limit=2)
    assert places(hand.take()) == [(0, 0), (0, 1)]
    hand.read_ahead()
    hand.read_ahead()
    assert reader.read == [2, 2]
    assert places(hand.take()) == [(0, 2), (0, 3)]
    hand.read_ahead()
    assert hand.take() == []


def test_a_batch_of_which_nothing_is_ours_is_not_the_end() -> None:
    def read(records: Sequence[Record]) -> list[Read | Dead]:
        return [Dead(each, DeadReason.EMPTY, "") for each in records if each.offset >= 2]

    hand = InHand(read, [record(0, offset) for offset in range(3)], limit=2)
    assert places(hand.take()) == [(0, 2)]


def test_what_no_longer_follows_on_its_position_is_forgotten_wherever_it_waits() -> None:
    polled = [record(offset % 2, offset) for offset in range(6)]
    hand = InHand(Reader(), polled, limit=2)
    hand.take()
    hand.read_ahead()
    hand.keep(lambda each: each.partition == 1)
    assert places(hand.take()) == [(1, 3), (1, 5)]
    assert hand.take() == []
