"""A launcher speaks in the logs of its own pool's tasks, in its own stream, and nowhere else."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from sqlalchemy import select

from libs.bus import Bus, Message
from libs.db.engine import Database
from libs.db.tables.logs import log_streams
from libs.events import subjects
from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import container_key, end_of_writer, launcher_stream
from services.logs.settings import WriterSettings
from services.logs.writing.store import store
from services.logs.writing.writer import LogWriter
from tests.integration.logs.conftest import Task, new_task, pool_of, texts_of


def said(task: Task, pool: str, text: str, *, stream: str = "", about: Task | None = None) -> Message:
    """``task`` names the allocation, ``about`` the task in whose log the line is meant to be."""
    about = about or task
    line = LogLine(1, 1, text.encode(), allocation_id=task.allocation)
    batch = LogBatch(
        task=about.task,
        stream=stream or launcher_stream(task.allocation),
        lines=(line,),
        allocation=task.allocation,
        contiguous=False,
    )
    data = msgspec.msgpack.encode(batch)
    subject = subjects.logs_of_launcher(pool, about.task)
    return Message(subject=subject, data=data, headers={}, sequence=1, delivered=1)


@pytest.fixture
def writer(db: Database, bus: Bus) -> LogWriter:
    return LogWriter(db=pool_of(db), bus=bus, settings=WriterSettings(), name="test")


async def test_only_the_launcher_of_its_pool_speaks_in_the_log_of_a_task(
    db: Database, writer: LogWriter, task: Task
) -> None:
    await writer.write(0, [said(task, "default", "ours"), said(task, "others", "not theirs")])
    assert await texts_of(db, task) == [b"ours"]


async def test_a_launcher_cannot_put_words_into_the_mouth_of_a_pod(db: Database, writer: LogWriter, task: Task) -> None:
    await writer.write(0, [said(task, "default", "I am a pod", stream=f"{task.allocation}/pod-0/0/stdout")])
    assert await texts_of(db, task) == []


async def test_an_allocation_of_its_own_opens_no_other_log(db: Database, writer: LogWriter, task: Task) -> None:
    other = await new_task(db)
    unknown = msgspec.structs.replace(task, allocation="nobody.1")
    await writer.write(0, [said(task, "default", "elsewhere", about=other), said(unknown, "default", "nowhere")])
    assert (await texts_of(db, task), await texts_of(db, other)) == ([], [])


async def test_refused_words_hold_up_nobody(db: Database, writer: LogWriter, task: Task) -> None:
    own = LogBatch(task=task.task, stream=f"{task.allocation}/pod-0/0/stdout", lines=(LogLine(0, 1, b"pod\n"),))
    message = Message(subjects.logs(task.task), msgspec.msgpack.encode(own), {}, 2, 1)
    await writer.write(0, [said(task, "others", "no"), message, said(task, "default", "yes")])
    assert sorted(await texts_of(db, task)) == [b"pod\n", b"yes"]


def over(pool: str, task: Task, stream: str, *, printed: int | None = None) -> Message:
    batch = end_of_writer(task.task, task.allocation, stream, printed=printed)
    subject = subjects.logs_of_launcher(pool, task.task)
    return Message(subject=subject, data=msgspec.msgpack.encode(batch), headers={}, sequence=1, delivered=1)


async def test_a_launcher_says_that_a_container_of_its_own_writes_no_more(
    db: Database, writer: LogWriter, task: Task
) -> None:
    other = await new_task(db)
    stream = f"{container_key(task.allocation, 'pod-0')}/stdout"
    written = LogBatch(task=task.task, stream=stream, lines=(LogLine(0, 1, b"last\n"),), allocation=task.allocation)
    await writer.write(0, [Message(subjects.logs(task.task), msgspec.msgpack.encode(written), {}, 1, 1)])
    await writer.write(0, [over("others", task, stream), over("default", other, stream)])
    assert await sealed(db, stream) is False
    await writer.write(0, [over("default", task, stream)])
    assert await sealed(db, stream) is True
    await writer.write(0, [over("default", task, stream)])
    broke_off = b"stdout broke off here; lines from number 1 on, if there were any, are lost\n"
    assert await texts_of(db, task) == [b"last\n", broke_off]


async def test_a_stream_that_was_complete_does_not_break_off(db: Database, writer: LogWriter, task: Task) -> None:
    stream = f"{container_key(task.allocation, 'pod-0')}/stdout"
    whole = LogBatch(
        task=task.task,
        stream=stream,
        lines=(LogLine(0, 1, b"last\n"),),
        allocation=task.allocation,
        end_of_stream=True,
        end_seq=1,
    )
    await writer.write(0, [Message(subjects.logs(task.task), msgspec.msgpack.encode(whole), {}, 1, 1)])
    await writer.write(0, [over("default", task, stream), over("default", task, stream, printed=1)])
    assert await texts_of(db, task) == [b"last\n"]


async def test_lines_that_were_printed_and_never_came_are_missed_where_they_would_stand(
    db: Database, writer: LogWriter, task: Task
) -> None:
    stream = f"{container_key(task.allocation, 'pod-0')}/stdout"
    written = LogBatch(task=task.task, stream=stream, lines=(LogLine(0, 1, b"first\n"),), allocation=task.allocation)
    await writer.write(0, [Message(subjects.logs(task.task), msgspec.msgpack.encode(written), {}, 1, 1)])
    await writer.write(0, [over("default", task, stream, printed=4)])
    assert await sealed(db, stream) is False
    await asyncio.sleep(0.01)
    await store(pool_of(db), 0, (), overdue={stream: 0.0}, parked_bytes=1)
    missed = b"3 lines of stdout, 1 to 3, have not arrived and will be out of order if anything of it still comes\n"
    assert await texts_of(db, task) == [b"first\n", missed]


async def sealed(db: Database, stream: str) -> bool:
    async with db.read() as connection:
        query = select(log_streams.c.sealed_at).where(log_streams.c.stream_key == stream)
        return (await connection.scalar(query)) is not None
