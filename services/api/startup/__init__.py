"""Start of the api: what handlers use, the application in front of them, and the server in front of that."""

from libs.imports.deferred_models import models_deferred
from libs.imports.lean import import_without

with models_deferred():  # those of a description that FastAPI does not write here
    import_without("fastapi.openapi.models", "email_validator")  # for addresses in forms; it is here for SCIM
