"""Who is woken by which news."""

from __future__ import annotations

from libs.bus import CoreMessage
from libs.events import subjects
from services.api.waits.hub import Hub, allocation_topic, log_topic, task_topic


async def test_news_wakes_those_who_watch_its_topic() -> None:
    hub = Hub()
    with hub.watch(allocation_topic("1.a.1")) as mine, hub.watch(allocation_topic("1.a.2")) as other:
        await hub._on_message(CoreMessage(subjects.event("allocation", "1.a.1", "signal"), b"{}"))
        assert (mine.is_set(), other.is_set()) == (True, False)


async def test_one_watch_may_have_several_topics() -> None:
    hub = Hub()
    for subject in (subjects.log_stored("1.a"), subjects.event("task", "1.a", "ended")):
        with hub.watch(log_topic("1.a"), task_topic("1.a")) as news:
            await hub._on_message(CoreMessage(subject, b""))
            assert news.is_set()


async def test_a_gap_on_the_bus_wakes_everybody() -> None:
    hub = Hub()
    with hub.watch("a") as one, hub.watch("b") as other:
        hub.notify_all()
        assert one.is_set()
        assert other.is_set()


async def test_observations_wake_nobody() -> None:
    hub = Hub()
    with hub.watch(allocation_topic("1.a.1")) as news:
        await hub._on_message(CoreMessage(subjects.observed("gpu", "1.a.1"), b""))
        assert not news.is_set()


async def test_nothing_is_kept_of_a_watch_that_ended() -> None:
    hub = Hub()
    with hub.watch("a", "b"), hub.watch("a"):
        pass
    assert hub._events == {}
