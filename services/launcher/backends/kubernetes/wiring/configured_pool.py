"""The pool that a launcher acts for, as its own settings and the configuration of the cluster have it together."""

from __future__ import annotations

from msgspec import Struct

from libs.cluster.checks import check_slot_requests
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.errors import InvalidRequest
from services.launcher.backends.kubernetes.capacity.slots import SlotKind
from services.launcher.backends.kubernetes.manifests.names import launcher_id
from services.launcher.backends.kubernetes.settings import KubernetesSettings


class ConfiguredPool(Struct, frozen=True, kw_only=True):
    config: PoolConfig
    cluster: ClusterConfig
    settings: KubernetesSettings
    namespace: str
    """Where its tasks are unless their workspace is bound to another one."""
    slot_kind: SlotKind

    @property
    def name(self) -> str:
        return self.config.pool_name

    @property
    def cluster_id(self) -> str:
        return self.settings.cluster_id

    @property
    def former_namespaces(self) -> tuple[str, ...]:
        """Where its tasks were before, in the order of the settings."""
        return tuple(each for each in self.settings.former_namespaces if each != self.namespace)

    @property
    def launcher(self) -> str:
        """What its objects are labelled with."""
        return launcher_id(self.cluster_id, self.name)


def configured_pool(name: str, *, settings: KubernetesSettings, cluster: ClusterConfig) -> ConfiguredPool:
    """The pool of this name. Raises InvalidRequest for settings that cannot work."""
    config = cluster.pool(name)
    if config is None:
        raise InvalidRequest(f"the cluster configuration has no resource pool named {name!r}")
    if not settings.cluster_id:
        raise InvalidRequest("kubernetes.cluster_id is required: the id that `det master info` shows")
    manager = cluster.resource_manager
    check_slot_requests(manager, slots_are_cores=cluster.slot_type == "cpu")
    return ConfiguredPool(
        config=config,
        cluster=cluster,
        settings=settings,
        namespace=settings.namespace or config.kubernetes_namespace or manager.default_namespace,
        slot_kind=SlotKind(
            type=cluster.slot_type,
            resource=cluster.slot_resource(name),
            cpu=manager.slot_resource_requests.cpu,
        ),
    )
