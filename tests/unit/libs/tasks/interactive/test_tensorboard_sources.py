from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from libs.tasks.interactive.tensorboard_sources import (
    TensorboardSource,
    over_bind_mounts,
    tensorboard_sources,
    with_inherited_image,
)

Object = dict[str, Any]


def source(ident: int, storage: Object, *trials: int, **config: Any) -> TensorboardSource:
    return TensorboardSource(experiment_id=ident, config={"checkpoint_storage": storage, **config}, trial_ids=trials)


SHARED = {"type": "shared_fs", "host_path": "/h"}
BASES = [
    ({**SHARED, "storage_path": None}, "/determined_shared_fs"),
    ({**SHARED, "storage_path": "a/b"}, "/determined_shared_fs/a/b"),
    ({**SHARED, "storage_path": "/h/a"}, "/determined_shared_fs/a"),
    ({"type": "directory", "container_path": "/d/"}, "/d"),
    ({"type": "s3", "bucket": "b", "prefix": None}, "s3://b"),
    ({"type": "s3", "bucket": "b", "prefix": "/p/q/"}, "s3://b/p/q"),
    ({"type": "gcs", "bucket": "b", "prefix": "p"}, "gs://b/p"),
    ({"type": "azure", "container": "c"}, "azure://c"),
]


@pytest.mark.parametrize(("storage", "base"), BASES, ids=[base for _, base in BASES])
def test_logs_lie_below_the_storage(storage: Object, base: str) -> None:
    found = tensorboard_sources("cid", [source(7, storage)])
    assert found.log_dirs == (f"{base}/cid/tensorboard/experiment/7/",)


def test_trials_are_shown_without_their_siblings_and_experiments_in_order() -> None:
    found = tensorboard_sources("cid", [source(9, {**SHARED, "host_path": "/i"}, 4, 3), source(2, SHARED)])
    assert found.log_dirs == (
        "/determined_shared_fs/cid/tensorboard/experiment/2/",
        "/determined_shared_fs_1/cid/tensorboard/experiment/9/trial/3/",
        "/determined_shared_fs_1/cid/tensorboard/experiment/9/trial/4/",
    )
    assert found.storage["host_path"] == "/i", "that of the newest"
    assert [(mount["host_path"], mount["container_path"]) for mount in found.bind_mounts] == [
        ("/h", "/determined_shared_fs"),
        ("/i", "/determined_shared_fs_1"),
    ]
    assert found.shared_fs_host_path == "/h"


def test_a_directory_is_mounted_as_its_experiment_had_it() -> None:
    mounts = [{"host_path": "/h", "container_path": "/data"}, {"host_path": "/i", "container_path": "/dat"}]
    storage = {"type": "directory", "container_path": "/data/checkpoints"}
    found = tensorboard_sources("cid", [source(1, storage, bind_mounts=mounts)])
    assert list(found.bind_mounts) == mounts[:1]
    assert found.shared_fs_host_path is None


def test_keys_of_s3_come_from_the_newest_experiment_that_has_some() -> None:
    old = {"type": "s3", "bucket": "old", "access_key": "a", "secret_key": "s", "endpoint_url": "http://minio:9000/x"}
    new = {"type": "s3", "bucket": "new", "access_key": None, "secret_key": None, "endpoint_url": None}
    assert dict(tensorboard_sources("cid", [source(2, new), source(1, old)]).variables) == {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_BUCKET": "new",
        "DET_S3_ENDPOINT_URL": "http://minio:9000/x",
        "S3_ENDPOINT": "minio:9000",
        "S3_USE_HTTPS": "0",
    }


@pytest.mark.parametrize("storage", [None, {}, {"type": "hdfs"}, {"type": "s3"}, {"type": "shared_fs"}])
def test_what_nobody_can_read_is_refused(storage: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"experiment 1 (has|lacks|cannot be shown: checkpoint_storage)"):
        tensorboard_sources("cid", [source(1, storage)])


def test_mounts_of_the_configuration_keep_their_places() -> None:
    own = {"host_path": "/mine", "container_path": "/x"}
    other = {"host_path": "/other", "container_path": "/y"}
    wanted = [{"host_path": "/theirs", "container_path": "/x"}, other]
    assert over_bind_mounts({"bind_mounts": [own]}, wanted)["bind_mounts"] == [own, other]
    assert over_bind_mounts({"bind_mounts": None}, [])["bind_mounts"] is None


def test_an_image_is_inherited_with_what_it_takes_to_pull_it() -> None:
    newest = {
        "environment": {
            "image": {"cpu": "c", "cuda": "g", "rocm": "r"},
            "registry_auth": {"username": "u", "password": None},
            "pod_spec": {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}], "hostname": "h"}},
        }
    }
    config = {"environment": {"image": {"cpu": "default"}, "pod_spec": {"spec": {"imagePullSecrets": [{"name": "b"}]}}}}
    assert with_inherited_image(config, newest)["environment"] == {
        "image": {"cpu": "c", "cuda": "g", "rocm": "r"},
        "registry_auth": {"username": "u"},
        "pod_spec": {"spec": {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]}},
    }
    assert with_inherited_image(config, {}) == config, "experiments that were imported may say nothing"
    own = {"environment": {"image": {}, "pod_spec": None, "registry_auth": {"username": "me"}}}
    inherited = with_inherited_image(own, newest)["environment"]
    assert inherited["registry_auth"] == {"username": "me"}
