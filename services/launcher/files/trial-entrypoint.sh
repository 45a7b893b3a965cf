#!/bin/bash
# Entrypoint of trials: spec/harness-protocol.md 6.2.

source /run/determined/task-setup.sh
set -e

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container --download_context_directory --resources --proxy
run_startup_hooks
# The rendezvous last, so that the pods of a gang leave it together; then the launcher.
exec "$DET_PYTHON_EXECUTABLE" /run/determined/train/start.py
