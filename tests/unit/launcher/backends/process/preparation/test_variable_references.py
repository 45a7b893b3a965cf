"""Variables refer to others as on Kubernetes."""

from __future__ import annotations

import pytest

from services.launcher.backends.process.preparation.variable_references import resolve_references


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$(DATA)/x", "/data/x"),
        ("$(HOME)$(DATA)", "/root/data"),
        ("$(LATER) $(NOWHERE)", "$(LATER) $(NOWHERE)"),
        ("$$(DATA) a$$b", "$(DATA) a$b"),
        ("$DATA ${DATA} $(DATA $", "$DATA ${DATA} $(DATA $"),
    ],
)
def test_users_refer_to_variables_as_on_kubernetes(value: str, expected: str) -> None:
    of_user = {"DATA": "/data", "VALUE": value, "LATER": "late"}
    variables = {"HOME": "/root", "DET_HPARAMS": "$(HOME)", **of_user}
    resolved = resolve_references(variables, of_user=of_user)
    assert resolved == {**variables, "VALUE": expected}
    assert list(resolved) == list(variables)
