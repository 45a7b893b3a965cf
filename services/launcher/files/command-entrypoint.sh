#!/bin/bash
# Entrypoint of commands and generic tasks: docs/reference/harness-protocol.md 6.3.

source /run/determined/task-setup.sh
set -e

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container --proxy --download_context_directory
run_startup_hooks

if [ "$#" -eq 1 ]; then
    exec /bin/sh -c "$1"
fi
exec "$@"
