"""Who is woken by which news."""

from __future__ import annotations

from libs.bus import CoreMessage
from libs.events import subjects
from services.api.waits.notifier import Notifier, allocation_topic, log_topic, task_topic


async def test_news_wakes_those_who_watch_its_topic() -> None:
    notifier = Notifier()
    with notifier.watch(allocation_topic("1.a.1")) as mine, notifier.watch(allocation_topic("1.a.2")) as other:
        await notifier._on_message(CoreMessage(subjects.event("allocation", "1.a.1", "signal"), b"{}"))
        assert (mine.is_set(), other.is_set()) == (True, False)


async def test_one_watch_may_have_several_topics() -> None:
    notifier = Notifier()
    for subject in (subjects.log_stored("1.a"), subjects.event("task", "1.a", "ended")):
        with notifier.watch(log_topic("1.a"), task_topic("1.a")) as news:
            await notifier._on_message(CoreMessage(subject, b""))
            assert news.is_set()


async def test_a_gap_on_the_bus_wakes_everybody() -> None:
    notifier = Notifier()
    with notifier.watch("a") as one, notifier.watch("b") as other:
        notifier.notify_all()
        assert one.is_set()
        assert other.is_set()


async def test_observations_wake_nobody() -> None:
    notifier = Notifier()
    with notifier.watch(allocation_topic("1.a.1")) as news:
        await notifier._on_message(CoreMessage(subjects.observed("gpu", "1.a.1"), b""))
        assert not news.is_set()


async def test_nothing_is_kept_of_a_watch_that_ended() -> None:
    notifier = Notifier()
    with notifier.watch("a", "b"), notifier.watch("a"):
        pass
    assert notifier._events == {}
