"""Prepares an interactive task: everything that reads and computes, so that whoever made a mistake hears of it first.

Nothing is stored here. Source: docs/reference/tasks-and-cli.md 2.3.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.resolution import resolve_pool
from libs.config import random_name
from libs.db.jobs.pool_offers import PoolOffer
from libs.errors import InvalidRequest, ResoluteError
from libs.events.orders import UsersPod
from libs.tasks.interactive.assembly import Layers, PoolRequest, assemble, requested
from libs.tasks.interactive.kinds import KINDS, InteractiveType
from libs.tasks.interactive.layers import read_submitted, read_template
from libs.tasks.interactive.tensorboard_sources import (
    TensorboardSource,
    TensorboardSources,
    over_bind_mounts,
    tensorboard_sources,
    with_inherited_image,
)
from libs.tasks.interactive.validation import check_config
from services.api.access.rights.rights import UserRights
from services.api.actions.interactive.home import Home, load_home
from services.api.actions.interactive.sources import check_names_something, load_sources
from services.api.actions.pod_rules import check_pods_of_users
from services.api.actions.pool_offers import OfferedTask, changes_of_experiment, completed, offers_of
from services.api.actions.possible_pools import UnfitPool, check_pools, names_fallbacks
from services.api.actions.resource_request import check_resources
from services.api.app import App
from services.api.contexts.pack import pack_context
from services.api.queries.workspaces.config_policies import Policies, policies_in
from services.api.queries.workspaces.templates import load_template
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.interactive.common import LaunchRequest
from services.api.wire.interactive.tensorboards import LaunchTensorboardRequest

Object = dict[str, Any]

_CONTEXT: Final = "failed to prepare launch params"


class Prepared(Struct, frozen=True, kw_only=True):
    """An interactive task that is ready to be stored."""

    task_type: InteractiveType
    config: Object
    """The final one."""
    users_pod: UsersPod
    home: Home
    context_tgz: bytes | None = None
    sources: TensorboardSources | None = None
    shows: tuple[int, ...] = ()
    """Experiments of a TensorBoard."""
    warnings: tuple[LaunchWarning, ...] = ()
    unfit: tuple[UnfitPool, ...] = ()
    """Of its pools, where there are several, those in which it cannot run."""
    offers: tuple[PoolOffer, ...] = ()
    """Of pools in which it may start beside its own; what is different there, of its configuration."""


async def prepare(
    app: App,
    task_type: InteractiveType,
    request: LaunchRequest,
    *,
    rights: UserRights,
    require_home: Callable[[Home], None],
) -> Prepared:
    """Check and complete what was submitted. Raises InvalidRequest, NotFound.

    rights        of the caller, by which filters find experiments
    require_home  raises unless the caller may launch there; until then nothing is said of that workspace
    """
    if isinstance(request, LaunchTensorboardRequest):
        check_names_something(request)
    try:
        prepared = await _prepare(app, task_type, request, rights, require_home)
    except ResoluteError as error:
        error.args = (f"{_CONTEXT}: {error}",)
        raise
    check_config(task_type, prepared.config)
    return prepared


async def _prepare(
    app: App,
    task_type: InteractiveType,
    request: LaunchRequest,
    rights: UserRights,
    require_home: Callable[[Home], None],
) -> Prepared:
    async with app.db.read() as connection:
        submitted = await asyncio.to_thread(read_submitted, request.config)
        layers = Layers(await _template(connection, request.template_name), submitted)
        home = await load_home(connection, request.workspace_id, require=require_home)
        policies = await policies_in(
            connection,
            home.workspace_id,
            "NTSC",
            larger_priority_first=app.cluster.resource_manager.larger_priority_first,
        )
        shown = await load_sources(connection, request, rights) if isinstance(request, LaunchTensorboardRequest) else []
    asked = requested(layers, slots=0 if task_type == "TENSORBOARD" else None)
    granted, warnings = _pool(app, asked, home, has_fallbacks=names_fallbacks(*layers))
    config = assemble(
        layers,
        defaults=app.cluster.defaults_of(granted.pool),
        granted=granted,
        default_priority=app.cluster.default_priority(granted.pool),
        has_files=bool(request.files),
    )
    offered = OfferedTask(
        pool=granted.pool,
        slots=max(granted.slots, 0),
        single_pod=True,
        time_limit_s=config["resources"].get("time_limit"),
        workspace_id=home.workspace_id,
        unavailable_pools=home.unavailable_pools,
    )
    config["resources"] = completed(app, offered, config["resources"])
    _check_policies(policies, config)
    async with app.db.read() as connection:
        users_pod = await check_pods_of_users(
            connection,
            app.cluster,
            *layers,
            workspace_id=home.workspace_id,
            pool=granted.pool,
            gpu=granted.slots > 0,
        )
    if task_type == "TENSORBOARD" or not config["description"]:
        config["description"] = random_name(random.Random(), KINDS[task_type].title)  # noqa: S311  (no secret)
    sources = tensorboard_sources(app.cluster_id, shown) if shown else None
    if sources is not None:
        config = _for_tensorboard(config, layers, shown, sources)

    async def in_pool(name: str) -> Object:
        there = assemble(
            layers,
            defaults=app.cluster.defaults_of(name),
            granted=PoolRequest(granted.slots, name),
            default_priority=app.cluster.default_priority(name),
            has_files=bool(request.files),
        )
        async with app.db.read() as connection:
            await check_pods_of_users(
                connection, app.cluster, *layers, workspace_id=home.workspace_id, pool=name, gpu=granted.slots > 0
            )
        return there if sources is None else _for_tensorboard(there, layers, shown, sources)

    offers = await offers_of(
        app, offered, config["resources"], own=config, in_pool=in_pool, changes=changes_of_experiment
    )
    possible = await check_pools(app, offered, task_type=task_type, config=config, offers=offers, warnings=warnings)
    return Prepared(
        task_type=task_type,
        config=config,
        users_pod=users_pod,
        home=home,
        context_tgz=await asyncio.to_thread(pack_context, request.files) if request.files else None,
        sources=sources,
        shows=tuple(source.experiment_id for source in shown),
        warnings=possible.warnings,
        unfit=possible.unfit,
        offers=offers,
    )


async def _template(connection: AsyncConnection, name: str) -> Object:
    """The template of this name; nothing for no name. Raises NotFound, InvalidRequest."""
    if not name:
        return {}
    found = await load_template(connection, name)
    return await asyncio.to_thread(read_template, name, found.config or {})


def _pool(app: App, asked: PoolRequest, home: Home, *, has_fallbacks: bool) -> tuple[PoolRequest, list[LaunchWarning]]:
    slots = max(asked.slots, 0)  # what is less is refused with all other mistakes
    pool = resolve_pool(
        app.cluster,
        name=asked.pool,
        slots=slots,
        workspace_compute=home.compute_pool,
        workspace_aux=home.aux_pool,
        workspace_id=home.workspace_id,
        unavailable=home.unavailable_pools,
    )
    capacity = app.capacity.of(pool)
    warnings = check_resources(
        app.cluster, capacity, pool=pool, slots=slots, single_pod=True, has_fallbacks=has_fallbacks
    )
    return PoolRequest(asked.slots, pool), warnings


def _check_policies(policies: Policies, config: Object) -> None:
    try:
        policies.check_launch(config["resources"])
    except InvalidRequest as error:
        raise InvalidRequest(f"failed constraint check: {error}") from error


def _for_tensorboard(
    config: Object, layers: Layers, shown: Sequence[TensorboardSource], sources: TensorboardSources
) -> Object:
    chosen = any((layer.get("environment") or {}).get("image") for layer in layers)
    pictured = config if chosen else with_inherited_image(config, shown[-1].config)
    return over_bind_mounts(pictured, sources.bind_mounts)
