#!/bin/bash
# Entrypoint of checkpoint garbage collection, with the arguments of the client's module: docs/reference/harness-protocol.md 6.7.

source /run/determined/task-setup.sh
set -e

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container

exec "$DET_PYTHON_EXECUTABLE" -m determined.exec.gc_checkpoints "$@"
