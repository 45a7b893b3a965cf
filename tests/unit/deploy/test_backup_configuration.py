"""The configuration in a backup, and what a restore asks of a folder before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.backup.archive import BackupContent, BackupCounts, write_archive
from deploy.backup.configuration import (
    Configuration,
    UpOptions,
    checkpoint_folder,
    dump_configuration,
    read_cluster_file,
    read_configuration,
)
from deploy.backup.one_machine import servers
from deploy.local.layout import Layout
from libs.errors import FailedPrecondition

CLUSTER = """
security: {initial_user_password: first, tls: {cert: /etc/cert.pem}}
checkpoint_storage: {type: s3, bucket: b, access_key: '', secret_key: key}
resource_pools:
- pool_name: default
  task_container_defaults: {registry_auth: {username: me, password: pass}}
"""
UP = UpOptions(host="203.0.113.9", port=8080, slots=2, python="/usr/bin/python3", subscribers=("mine",))


def test_configuration_comes_back_with_a_list_of_its_secrets(tmp_path: Path) -> None:
    cluster, file = tmp_path / "cluster.yaml", tmp_path / "backup.tar.gz"
    cluster.write_text(CLUSTER)
    configuration = read_cluster_file(cluster, UP)
    assert configuration.secrets == (
        "security.initial_user_password",
        "checkpoint_storage.secret_key",
        "resource_pools[0].task_container_defaults.registry_auth.password",
    )
    for kept in (configuration, Configuration()):
        with write_archive(file, BackupContent(taken_at="", release="1.0", schema="0001")) as archive:
            dump_configuration(kept, archive)
            archive.end(BackupCounts(messages={}, rows={}))
        assert read_configuration(file) == kept


def test_checkpoints_have_a_folder_only_where_they_are_in_one() -> None:
    assert checkpoint_folder(Configuration(cluster=b"checkpoint_storage: {type: shared_fs, host_path: /c}")) == "/c"
    assert checkpoint_folder(Configuration(cluster=CLUSTER.encode())) is None
    assert checkpoint_folder(Configuration()) is None


def test_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with (
        pytest.raises(FailedPrecondition, match="is not empty; move it away"),
        servers(Layout(tmp_path), Configuration(), host=None),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_address_of_another_machine_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with (
        pytest.raises(FailedPrecondition, match=r"listens on 203\.0\.113\.9, .* say which one with --host"),
        servers(Layout(tmp_path / "new"), Configuration(up=UP), host=None),
    ):
        pass
    assert not (tmp_path / "new").exists()
