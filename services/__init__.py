"""The services; each is a process."""

import gc
import sys

from libs.imports.lean import import_without

if sys.argv[:1] == ["-m"] and any(each.startswith("services.") and each.endswith(".main") for each in sys.orig_argv):
    # What a service imports stays: looking through it for garbage takes a tenth of the time. run_service ends this.
    # Source: https://docs.python.org/3/using/cmdline.html#cmdoption-m (sys.argv while the module is looked for).
    gc.disable()

import_without("structlog", "rich")  # tracebacks in colour
import_without("msgspec", "typing_extensions")  # which Python has itself from 3.11 on
