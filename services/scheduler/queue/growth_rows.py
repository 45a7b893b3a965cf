"""The growth of a pool between plans: for whom the cluster was asked for nodes, and for whom that was in vain.

A row is written in the transaction of the plan that decides it, with the order of the launcher beside it in the outbox.
Whoever plans the pool next goes on from there, after a restart too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from libs.cluster.config import PoolConfig
from libs.cluster.growth import GrowthConfig, NodeTemplate
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.podspec.quantities import units
from services.scheduler.orders.placeholders import placeholder_order
from services.scheduler.plan.decisions import EndGrowth, Grow
from services.scheduler.plan.nodes.amounts import CPU, MEMORY, PODS, amounts
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.nodes.taints import NodeTaint
from services.scheduler.plan.snapshot import Growing, Growth, NodeSlots, Placement
from services.scheduler.transactions.outbox_buffer import OutboxBuffer

LONGEST_REST: Final = timedelta(hours=4)
"""The pause of a request for which nodes do not come is doubled each time, up to this."""
_MOST_DOUBLED: Final = 20
_PLENTY: Final = 1 << 60
_PODS_OF_NODE: Final = 110

_READ: Final = PreparedStatement("""
    SELECT allocation_id, pods, nodes, node_slots, gives_up_at, known_nodes, places, rests_until
    FROM pool_growths WHERE pool = :pool
""")
_ASK: Final = PreparedStatement("""
    INSERT INTO pool_growths (pool, allocation_id, pods, nodes, node_slots, gives_up_at, known_nodes, places, attempts,
                              placeholders)
    VALUES (:pool, :allocation, :pods, :nodes, :node_slots, :gives_up_at, :known_nodes::jsonb, :places::jsonb, 1,
            :placeholders::jsonb)
    ON CONFLICT (pool, allocation_id) DO UPDATE
    SET pods = excluded.pods, nodes = excluded.nodes, node_slots = excluded.node_slots,
        gives_up_at = excluded.gives_up_at, known_nodes = excluded.known_nodes, places = excluded.places,
        placeholders = excluded.placeholders, rests_until = NULL,
        attempts = pool_growths.attempts + CASE WHEN pool_growths.rests_until IS NULL THEN 0 ELSE 1 END
""")
_GIVE_UP: Final = PreparedStatement("""
    UPDATE pool_growths
    SET rests_until = :now::timestamptz
        + least(:rest_s * 2.0 ^ least(attempts - 1, :most_doubled), :longest_s) * interval '1 second'
    WHERE pool = :pool AND allocation_id = :allocation AND rests_until IS NULL
""")
_END: Final = PreparedStatement("DELETE FROM pool_growths WHERE pool = :pool AND allocation_id = :allocation")
_FORGET: Final = PreparedStatement("""
    DELETE FROM pool_growths g WHERE g.pool = :pool AND NOT EXISTS (
        SELECT FROM allocations a
        WHERE a.allocation_id = g.allocation_id AND a.released_at IS NULL AND a.assigned_at IS NULL
    )
""")


async def load_growth(connection: Connection, pool: PoolConfig, *, slot_resource: str, max_aux: int) -> Growth | None:
    """How the pool grows, and for whom now; None where it does not.

    max_aux  pods without slots that a node takes
    """
    config = pool.growth
    if config is None:
        return None
    rows = await _READ.rows(connection, pool=pool.pool_name)
    return Growth(
        deadline=timedelta(seconds=config.deadline),
        template=_template(config.node_template, slot_resource, max_aux) if config.node_template is not None else None,
        max_nodes=config.max_nodes,
        now=next((_growing(row) for row in rows if row["rests_until"] is None), None),
        rests_until={row["allocation_id"]: row["rests_until"] for row in rows if row["rests_until"] is not None},
    )


async def grows(connection: Connection, pool: str) -> bool:
    """Whether the cluster is asked for nodes of the pool now."""
    return any(row["rests_until"] is None for row in await _READ.rows(connection, pool=pool))


async def write_growth(
    connection: Connection,
    pool: str,
    config: GrowthConfig,
    change: Grow | EndGrowth,
    *,
    needs: PodRequirements | None,
    now: datetime,
) -> None:
    """Write down what a plan has decided, and tell the launcher of the pool.

    needs  what each pod of the allocation requires, where that is known
    """
    out = OutboxBuffer()
    if isinstance(change, Grow):
        order = placeholder_order(pool, change, needs)
        await _ASK.rows(
            connection,
            pool=pool,
            allocation=change.allocation,
            pods=change.pods,
            nodes=change.nodes,
            node_slots=change.node_slots,
            gives_up_at=change.gives_up_at,
            known_nodes=_document(sorted(change.known_nodes)),
            places=_document(change.places),
            placeholders=_document(order),
        )
        out.placeholders(order)
    else:
        if change.gave_up:
            await _GIVE_UP.rows(
                connection,
                pool=pool,
                allocation=change.allocation,
                now=now,
                rest_s=float(config.deadline),
                most_doubled=_MOST_DOUBLED,
                longest_s=LONGEST_REST.total_seconds(),
            )
        else:
            await _END.rows(connection, pool=pool, allocation=change.allocation)
        out.withdraw_placeholders(pool)
    await _FORGET.rows(connection, pool=pool)
    await out.flush(connection)


def _growing(row: Mapping[Any, Any]) -> Growing:
    return Growing(
        allocation=row["allocation_id"],
        pods=row["pods"],
        nodes=row["nodes"],
        node_slots=row["node_slots"],
        gives_up_at=row["gives_up_at"],
        known_nodes=frozenset(row["known_nodes"]),
        places=msgspec.convert(row["places"], tuple[Placement, ...]),
    )


def _template(template: NodeTemplate, slot_resource: str, max_aux: int) -> NodeSlots:
    """A node as the plan sees those of the pool."""
    given = {CPU: template.cpu, MEMORY: template.memory}
    has = {name: _PLENTY if value is None else units(name, value) for name, value in given.items()}
    # Slots that are cores are in the template's cores, if it says how many.
    slots = {} if slot_resource == CPU else {slot_resource: template.slots}
    shape = NodeShape(
        labels=tuple(sorted(template.labels.items())),
        taints=tuple(NodeTaint(each.key, each.value, each.effect) for each in template.taints),
        allocatable=amounts({**has, **slots, "ephemeral-storage": _PLENTY, PODS: _PODS_OF_NODE}),
    )
    return NodeSlots(name="", slots=template.slots, max_aux=max_aux, shaped=ShapedNode(name="", shape=shape))


def _document(value: Any) -> str:
    return msgspec.json.encode(value).decode()
