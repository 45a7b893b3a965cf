"""What of a request reaches a task, and what of a response its client."""

from __future__ import annotations

import pytest

from services.api.proxy.headers import Headers, to_client, to_task

FROM = [(b"x-forwarded-for", b"9.9.9.9"), (b"x-real-ip", b"9.9.9.9"), (b"x-forwarded-proto", b"http")]
"""What is added to every request of this client."""


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], []),
        ([(b"host", b"here"), (b"x", b"1"), (b"x", b"2")], [(b"host", b"here"), (b"x", b"1"), (b"x", b"2")]),
        ([(b"connection", b"keep-alive, X-Mine"), (b"x-mine", b"1"), (b"x-other", b"2")], [(b"x-other", b"2")]),
        ([(b"keep-alive", b"5"), (b"te", b"trailers"), (b"trailer", b"x"), (b"upgrade", b"h2c")], []),
        ([(b"transfer-encoding", b"chunked"), (b"proxy-authorization", b"x"), (b"expect", b"100-continue")], []),
        ([(b"authorization", b"BEARER secret")], []),
        ([(b"authorization", b"token of-jupyter")], [(b"authorization", b"token of-jupyter")]),
        ([(b"authorization", b"Basic dTpw")], [(b"authorization", b"Basic dTpw")]),
        ([(b"grpc-metadata-x-user-token", b"s"), (b"grpc-metadata-x-allocation-token", b"s")], []),
        ([(b"cookie", b"auth=secret; proxy_token=secret")], []),
        ([(b"cookie", b"a=1;auth=secret;  b=auth=2; authx=3")], [(b"cookie", b"a=1; b=auth=2; authx=3")]),
        ([(b"cookie", b"auth=secret"), (b"cookie", b"a=1")], [(b"cookie", b"a=1")]),
    ],
)
def test_what_reaches_a_task(headers: Headers, expected: Headers) -> None:
    assert to_task(headers, client="9.9.9.9", scheme="http") == [*expected, *FROM]


@pytest.mark.parametrize(
    ("before", "client", "expected"),
    [
        ([], "9.9.9.9", b"9.9.9.9"),
        ([b"1.1.1.1"], "9.9.9.9", b"1.1.1.1, 9.9.9.9"),
        ([b"1.1.1.1", b" 2.2.2.2 ,, 3.3.3.3"], "9.9.9.9", b"1.1.1.1, 2.2.2.2, 3.3.3.3, 9.9.9.9"),
        # found in the list by a server that trusts who added to it
        ([b"9.9.9.9"], "9.9.9.9", b"9.9.9.9"),
        ([b"1.1.1.1, 9.9.9.9:4711, 10.0.0.1"], "9.9.9.9", b"1.1.1.1, 9.9.9.9"),
        ([b"[2001:db8::1]:4711"], "2001:db8::1", b"2001:db8::1"),
        ([b"2001:db8::1"], "2001:db8::1", b"2001:db8::1"),
        # who names itself is still what is last
        ([b"9.9.9.9, 1.1.1.1"], "9.9.9.9", b"9.9.9.9"),
        ([b"9.9.9.9, 1.1.1.1, 9.9.9.9"], "9.9.9.9", b"9.9.9.9, 1.1.1.1, 9.9.9.9"),
        ([b"1.1.1.1"], "", b"1.1.1.1"),
    ],
)
def test_a_task_is_told_the_way_of_a_request_once(before: list[bytes], client: str, expected: bytes) -> None:
    sent = [(b"x-forwarded-for", value) for value in before]
    told = [value for name, value in to_task(sent, client=client, scheme="http") if name == b"x-forwarded-for"]
    assert told == [expected]


def test_what_proxies_in_front_have_said_is_kept() -> None:
    said = [(b"x-real-ip", b"1.1.1.1"), (b"x-forwarded-proto", b"https")]
    assert to_task(said, client="", scheme="http") == said
    assert (b"x-forwarded-proto", b"https") in to_task([], client="9.9.9.9", scheme="https")


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, [(b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2")], [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]),
        (200, [(b"Connection", b"X-Mine"), (b"X-Mine", b"1"), (b"Transfer-Encoding", b"chunked")], []),
        (200, [(b"Content-Length", b"3")], [(b"content-length", b"3")]),
        (304, [(b"Content-Length", b"3"), (b"ETag", b"1")], [(b"etag", b"1")]),
        (204, [(b"Content-Length", b"0")], []),
    ],
)
def test_what_reaches_a_client(status: int, headers: Headers, expected: Headers) -> None:
    assert to_client(headers, status=status) == expected
