"""The name of a task's user where this machine does not know it: the task has a passwd of its own (pure).

sshd lets nobody in whom it cannot find there, and wants to start sessions with the uid that it finds. Sources:
passwd(5), shadow(5).
"""

from __future__ import annotations


def passwd_for(machine: str, *, user: str, uid: int, gid: int, home: str) -> str | None:
    """A passwd in which ``user`` has this uid, made of that of the machine; None when that one will do.

    The name may be another's here, as ``root`` is where an ordinary user runs all: of two lines the first counts.
    """
    for line in machine.splitlines():
        name, _, rest = line.partition(":")
        if name == user:
            if rest.split(":")[1:2] == [str(uid)]:
                return None
            break
    return f"{user}:x:{uid}:{gid}::{home}:/bin/bash\n{machine}"


def shadow_for(user: str) -> str:
    """A shadow with which he has no password and is not locked; that of the machine is not for tasks to read, and what
    else answers where it cannot be read may say that ``root`` is locked."""
    return f"{user}:*:::::::\n"
