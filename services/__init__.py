"""The services; each is a process."""

import gc
import sys

from libs.imports.deferred import defer_imports
from libs.imports.lean import import_without
from libs.imports.partial import import_partly
from libs.imports.undocumented import import_undocumented

if sys.argv[:1] == ["-m"] and any(each.startswith("services.") and each.endswith(".main") for each in sys.orig_argv):
    # A service runs, as opposed to a test that imports it.
    # Source: https://docs.python.org/3/using/cmdline.html#cmdoption-m (sys.argv while the module is looked for).
    # What is imported stays: looking through it for garbage takes a tenth of the time. run_service ends this.
    gc.disable()
    import_undocumented()

import_without("structlog", "rich")  # tracebacks in colour
import_without("msgspec", "typing_extensions")  # which Python has itself from 3.11 on
import_partly("libs.config", {})  # whole for those that build configurations; others use a module of it
defer_imports(
    {
        "asyncpg.connect_utils": {"configparser": ()},  # files of connections, which are named in the environment
        "fastapi.openapi.utils": {"http.client": ()},
        "fastapi.routing": {"email.message": ()},
        "nats.js.client": {"email.parser": ("BytesParser",)},
        "nats.js.manager": {"email.parser": ("BytesParser",)},
        "shutil": {"bz2": (), "lzma": ()},
        "sqlalchemy.util.compat": {
            "importlib.metadata": (),  # dialects that others have installed
            "sysconfig": {"get_config_var": lambda _: int("t" in sys.abiflags)},  # Py_GIL_DISABLED, one of a thousand
        },
        "sqlalchemy.util.langhelpers": {"importlib.metadata": ()},
        "starlette.exceptions": {"http.client": ()},
        "starlette.middleware.errors": {"html": ()},
        "uvicorn.config": {"logging.config": (), "configparser": ("RawConfigParser",)},
        "websockets.version": {"importlib.metadata": ()},
        # Ours, of which a service may never do what they are for.
        "libs.bus.contents.reading": {"email.parser": ()},
        "libs.webhooks.posting": {"email.utils": ()},
        "services.api.contexts.pack": {"tarfile": ()},
        "services.api.contexts.tree": {"tarfile": ()},
        "services.api.downloads.archives": {"tarfile": (), "zipfile": ()},
        "services.api.proxy.responses": {"html": ()},
        "services.api.proxy.tunnels.handshake": {"h11": ()},
        "services.api.routes.cluster.usage": {"csv": ()},
        "services.api.routes.users.sessions": {"email.utils": ()},
        "services.api.routes.users.sso": {"email.utils": (), "html": ()},
        "services.api.versions": {"importlib.metadata": ()},
    }
)
