"""The services; each is a process."""

from libs.imports.lean import import_without

import_without("structlog", "rich")  # tracebacks in colour
