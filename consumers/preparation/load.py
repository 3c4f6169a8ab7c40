"""The directory of a batch: the people that its kinds name and no others, in at most two statements.

Asked in one call and read in another, so that a group can send its own statements in between.
"""

from __future__ import annotations

from consumers.preparation.model import Directory, Holder, Person, UserKey, Wanted
from consumers.preparation.queries import QUERIES
from consumers.runtime.arrays import text_array
from consumers.runtime.tx import Answer, Tx


class Asked:
    """Look-ups that have been sent."""

    __slots__ = ("_holders", "_people")

    def __init__(self, holders: Answer | None, people: Answer | None) -> None:
        self._holders = holders
        self._people = people

    def directory(self) -> Directory:
        """Wait for the answers. To be called once."""
        holders = self._holders.rows() if self._holders is not None else ()
        people = self._people.rows() if self._people is not None else ()
        return Directory(
            {Holder(tenant, subject, role): Person(*person) for tenant, subject, role, *person in holders},
            {UserKey(tenant, person[0]): Person(*person) for tenant, *person in people},
        )


def ask(tx: Tx, product: str, wanted: Wanted) -> Asked:
    """Send what `wanted` needs; nothing when it names nobody."""
    holders = people = None
    if wanted.holders:
        roles = list(wanted.holders)
        holders = tx.ask(
            QUERIES["holders"],
            {
                "product": product,
                "tenant_ids": text_array([holder.tenant_id for holder in roles]),
                "subject_ids": text_array([holder.subject_id for holder in roles]),
                "roles": text_array([holder.role for holder in roles]),
            },
        )
    if wanted.people:
        users = list(wanted.people)
        people = tx.ask(
            QUERIES["people"],
            {
                "tenant_ids": text_array([user.tenant_id for user in users]),
                "user_ids": text_array([user.user_id for user in users]),
            },
        )
    return Asked(holders, people)
