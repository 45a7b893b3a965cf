from __future__ import annotations

from libs.bus.headers import message_id, number_of
from services.scheduler.workqueue.notifications import Notification
from services.scheduler.workqueue.own_news import MOST_KEPT, OwnNews
from services.scheduler.workqueue.work_queue import Request

EXPERIMENT = Notification((Request("experiment", 3),))


def test_events_of_a_creation_are_no_news_and_later_ones_are() -> None:
    news = OwnNews()
    assert news.without(EXPERIMENT, 7) == EXPERIMENT
    news.created(3, 7)
    assert news.without(EXPERIMENT, 6) == Notification()
    assert news.without(EXPERIMENT, 7) == Notification()
    assert news.without(EXPERIMENT, 8) == EXPERIMENT
    assert news.without(EXPERIMENT, None) == EXPERIMENT


def test_creation_that_an_event_has_told_of_is_known_to_be_looked_at() -> None:
    news = OwnNews()
    assert not news.created(3, 7), "nothing has told of it"
    assert news.without(EXPERIMENT, 8) == EXPERIMENT
    for number in (6, 7):
        assert news.without(Notification((Request("experiment", 4),)), number).requests
    assert news.created(4, 7)
    assert not news.created(4, 7), "once"
    assert news.without(Notification((Request("deletion", 5),)), 7).requests
    assert not news.created(5, 7), "a look at its deletion is none at itself"


def test_other_objects_are_looked_at_whatever_their_number() -> None:
    news = OwnNews()
    news.created(3, 7)
    for request in (Request("experiment", 4), Request("deletion", 3), Request("allocation", "3.x.1")):
        assert news.without(Notification((request,)), 5) == Notification((request,))


def test_pool_is_planned_once_for_a_request_of_our_own() -> None:
    news = OwnNews()
    asked = Notification((), "pool", "3.x.1")
    news.requested(["3.x.1"])
    assert news.without(asked, 5) == Notification()
    assert news.without(asked, 5) == asked
    assert news.without(Notification((), "pool"), 5) == Notification((), "pool")


def test_what_is_known_is_forgotten_in_time() -> None:
    news = OwnNews()
    for experiment in range(MOST_KEPT + 1):
        news.created(experiment, 7)
    assert news.without(Notification((Request("experiment", 0),)), 7).requests
    assert not news.without(Notification((Request("experiment", MOST_KEPT),)), 7).requests


def test_number_of_a_message_comes_from_its_id() -> None:
    assert number_of(message_id("0123abcd-4567-89ab", 42)) == 42
    assert number_of("") is None
    assert number_of("0123abcd-x") is None
