#!/bin/bash
# Entrypoint of trials: docs/reference/harness-protocol.md 6.2. With --hooks it goes on after its first part, in `start.py`.

if [ "$1" = --hooks ]; then
    TASK_IS_SET_UP=yes
fi
source /run/determined/task-setup.sh
set -e

if [ "$1" = --hooks ]; then
    run_startup_hooks
    exec "$DET_PYTHON_EXECUTABLE" /run/determined/train/start.py --after-hooks
fi
exec "$DET_PYTHON_EXECUTABLE" /run/determined/train/start.py
