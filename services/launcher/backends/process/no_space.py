"""What a full disk looks like: whoever has to write something there waits, and tries again.

Only the standard library: the supervisor of an allocation uses it as well.
"""

from __future__ import annotations

import errno

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
TRY_AGAIN_S = 0.5


def is_no_space(error: BaseException) -> bool:
    """True when a file cannot be written now because there is no room for it."""
    return isinstance(error, OSError) and error.errno in NO_SPACE
