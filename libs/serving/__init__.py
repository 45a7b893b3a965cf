"""HTTP as the services with HTTP of their own serve it: bounded in every direction before anybody has shown a token."""

from libs.imports.partial import import_partly

# Its command line brings click and multiprocessing along.
import_partly("uvicorn", {"config": ("Config",), "server": ("Server",)})
