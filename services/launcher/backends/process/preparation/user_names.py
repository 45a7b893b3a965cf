"""Names of a task's user and group where this machine does not know them: the task has a passwd and a group of its own
(pure).

``whoami``, ``getpass.getuser`` and ``sshd`` fail for a uid that has no name. sshd also lets nobody in whom it cannot
find there, and wants to start sessions with the uid that it finds. Sources: passwd(5), group(5), shadow(5).
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


def group_for(machine: str, *, group: str, gid: int, with_tty: bool) -> str | None:
    """A group file in which ``group`` has this gid, made of that of the machine; None when that one will do.

    with_tty  whether the group ``tty`` is in it. An sshd that is not root's gives a terminal to that group, which it
              may not do, and ends the session; without the group, the terminal is its user's alone.
    """
    lines = machine.splitlines(keepends=True)
    kept = [line for line in lines if with_tty or not line.startswith("tty:")]
    of_group = next((line.split(":") for line in kept if line.startswith(f"{group}:")), [])
    if of_group[2:3] != [str(gid)]:
        kept.insert(0, f"{group}:x:{gid}:\n")
    return None if kept == lines else "".join(kept)
