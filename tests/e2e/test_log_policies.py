"""What the log of a trial says decides whether, and where, it is tried again (docs/reference/logs.md 7 and 16)."""

from __future__ import annotations

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.programs import submit

# Not as it is printed: the harness says what it launches, and that line is first.
FAILS = r"printf 'assert 0 %s self.metrics_sigma\n' '<=' >&2; exit 1"


def log_of(look: Looking, experiment: int) -> str:
    return "".join(line["message"] for line in look.logs(look.trial(experiment)["id"]))


def test_a_trial_is_not_retried_when_its_log_says_so(det: Client, look: Looking) -> None:
    policy = {"name": "sigma", "pattern": "assert 0 <= self", "action": {"type": "cancel_retries"}}
    experiment = submit(det, FAILS, max_restarts=5, log_policies=[policy])
    look.wait(experiment, "STATE_ERROR")
    log = log_of(look, experiment)  # at once: what explains a state is stored before it shows
    trial = look.trial(experiment)
    assert (trial["restarts"], trial["logPolicyMatched"]) == (0, "sigma")
    assert "trial failed and matched logs to a don't retry policy" in log
    assert '(log "assert 0 <= self.metrics_sigma" matched regex "assert 0 <= self")' in log


def test_a_trial_is_not_retried_where_its_log_complains(det: Client, look: Looking) -> None:
    policy = {"pattern": "sigma", "action": "exclude_node"}
    experiment = submit(det, FAILS, max_restarts=3, log_policies=[policy])
    look.wait(experiment, "STATE_ERROR")  # there is no other machine
    assert look.trial(experiment)["restarts"] == 1
    assert "therefore will not schedule on" in log_of(look, experiment)


def test_a_label_says_what_was_seen(det: Client, look: Looking) -> None:
    experiment = submit(det, "echo 'CUDA out of memory'")
    look.wait(experiment)
    assert look.trial(experiment)["logPolicyMatched"] == "CUDA OOM"
    plain = submit(det, "echo nothing")
    look.wait(plain)
    assert look.trial(plain).get("logPolicyMatched") is None
