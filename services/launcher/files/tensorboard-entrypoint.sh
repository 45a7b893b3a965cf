#!/bin/bash
# Entrypoint of TensorBoards; arguments: storage_config.json, log directories, arguments of the user.
# Contract: docs/reference/harness-protocol.md 6.6.

source /run/determined/task-setup.sh
set -e

if [ -z "$DET_SKIP_PIP_INSTALL" ]; then
    "$DET_PYTHON_EXECUTABLE" -c 'import tensorboard, tensorboard_plugin_profile' 2>/dev/null ||
        "$DET_PYTHON_EXECUTABLE" -m pip install -q --user tensorboard tensorboard-plugin-profile
fi

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container --proxy --download_context_directory
run_startup_hooks

version="$("$DET_PYTHON_EXECUTABLE" -c 'from tensorboard.version import VERSION; print(VERSION)')"

exec "$DET_PYTHON_EXECUTABLE" -u -m determined.exec.tensorboard "$version" "$@" \
    > >(tee -p >("$DET_PYTHON_EXECUTABLE" /run/determined/check_ready_logs.py \
        --ready-regex "TensorBoard contains metrics" \
        --waiting-regex "TensorBoard (is waiting for|waits on) metrics"))
