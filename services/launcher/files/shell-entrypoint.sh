#!/bin/bash
# Entrypoint of shells, with the arguments of sshd: docs/reference/harness-protocol.md 6.4.

source /run/determined/task-setup.sh
set -e

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container --resources --proxy --download_context_directory
run_startup_hooks

[ -x /usr/sbin/sshd ] || give_up "this shell needs the program /usr/sbin/sshd, which is not installed: install the\
 package openssh-server beforehand, or in a startup-hook.sh"

# sshd starts sessions with an environment of its own; the one of the container travels in the authorized key.
"$DET_PYTHON_EXECUTABLE" /run/determined/ssh/authorize_keys.py \
    /run/determined/ssh/authorized_keys_unmodified /run/determined/ssh/authorized_keys
# Login shells begin with the PATH of /etc/profile; login-profile.sh gives them this one.
printf '%s' "$PATH" >/run/determined/ssh/path

# sshd as root drops its rights into this directory, and refuses to start without it.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p /run/sshd && chmod 0755 /run/sshd
fi

exec /usr/sbin/sshd "$@" \
    2> >(tee -p >("$DET_PYTHON_EXECUTABLE" /run/determined/check_ready_logs.py \
        --ready-regex "Server listening on") >&2)
