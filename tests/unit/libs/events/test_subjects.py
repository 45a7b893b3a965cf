"""Ids in subjects: no id can reach beyond its own token, and no two share one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from libs.events import subjects

IDS = st.text(min_size=1)


@given(IDS)
def test_token_is_one_valid_token_of_subject_and_key(ident: str) -> None:
    assert re.fullmatch(r"[-=_a-zA-Z0-9]+", subjects.token(ident))


@given(IDS, IDS)
def test_different_ids_have_different_tokens(one: str, other: str) -> None:
    assert (subjects.token(one) == subjects.token(other)) == (one == other)


@given(st.text(alphabet="a_.=5F-", max_size=6), st.text(alphabet="a_.=5F-", max_size=6))
def test_escapes_cannot_be_forged(one: str, other: str) -> None:
    assert (subjects.token(one) == subjects.token(other)) == (one == other)


def test_readable_ids_stay_readable() -> None:
    assert subjects.token("1.3f2a-b.2") == "1_3f2a-b_2"
    assert subjects.token("my_pool") == "my=5Fpool"


@given(IDS, IDS)
def test_order_keys_match_the_filter_of_their_pool_only(pool: str, allocation: str) -> None:
    head, *rest = subjects.order_key(pool, allocation).split(".")
    assert (head, len(rest)) == (subjects.orders_of(pool).split(".")[0], 1)


@given(IDS)
def test_logs_of_a_task_stay_in_its_shard(task: str) -> None:
    assert subjects.logs(task).startswith(subjects.logs_of_shard(subjects.log_shard(task)).removesuffix(">"))
