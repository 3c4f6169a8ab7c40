"""A burst that is still in Kafka, of a tenant whose provider is slow: whoever comes behind it is told meanwhile."""

from __future__ import annotations

from connectors.kafka.clients import admin_client
from connectors.kafka.offsets import end_offsets
from deploy.local.stack import Stack
from deploy.providers.faults import Fault
from tests.acceptance.house import APPLICANT, House, Lead
from tests.acceptance.waiting import until

BURST = 400
SHARE = 32
"""What one tenant may have in flight at the local endpoint."""
SLOW_S = 5.0
_BURST = """
WITH people AS (
  INSERT INTO platform.contact (tenant_id, user_id, first_name, phone)
  SELECT %(tenant)s, 'u' || n, 'Ada', '+4915112345678' FROM generate_series(1, %(count)s::int) AS n
), holders AS (
  INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)
  SELECT %(tenant)s, 'loans', 'B-' || n, 'applicant', 'u' || n FROM generate_series(1, %(count)s::int) AS n
)
SELECT platform.append(%(tenant)s, 'loans', 'B-' || n, 'loans.offer_submitted',
                       '{"applicant_id": "a", "offer_id": "o-1", "amount": 1000000}')
  FROM generate_series(1, %(count)s::int) AS n"""


def test_behind_a_burst_in_kafka_and_a_provider_that_hangs_another_tenant_is_told(
    house: House, lead: Lead, neighbour: Lead
) -> None:
    """The intake waits for no call: it comes to the end of the burst while the first calls of it still hang."""
    before = in_kafka(house.stack)
    lead.owner.execute(_BURST.encode(), {"tenant": lead.tenant, "count": BURST})
    neighbour.service.start_application("L-1", applicant_id="ada", contact=APPLICANT)
    neighbour.service.submit_offer("L-1", offer_id="o-1", amount=1_000_000)
    until(
        lambda: in_kafka(house.stack) >= before + BURST + 2, "all of it is in Kafka, and nobody has read it"
    )
    house.local.faults.tell(Fault(kind="stall", tenant=lead.tenant, seconds=SLOW_S))
    with house.running("supersession.loans", "delivery.whatsapp"):
        until(lambda: neighbour.arrivals() != [], "whoever came last is told")
        told_meanwhile = len(lead.arrivals())
        house.local.faults.clear()
        assert told_meanwhile <= SHARE, "behind no more than one round of the slow calls"
        until(lambda: len(lead.arrivals()) == BURST, "and the burst after all")
    assert {each.to for each in neighbour.arrivals()} == {APPLICANT.phone}


def in_kafka(stack: Stack) -> int:
    """Records of the product's events."""
    topic = "events.loans"
    return sum(end_offsets(admin_client(stack.settings), [topic])[topic].partitions.values())
