#!/bin/bash
# Entrypoint of TensorBoards; arguments: storage_config.json, log directories, arguments of the user.
# Contract: docs/reference/harness-protocol.md 6.6.

source /run/determined/task-setup.sh
set -e

# A failure shows below, unless a hook brings TensorBoard along.
if [ -z "$DET_SKIP_PIP_INSTALL" ] && ! { has_module tensorboard && has_module tensorboard_plugin_profile; }; then
    "$DET_PYTHON_EXECUTABLE" -m pip install -q --user tensorboard tensorboard-plugin-profile || true
fi

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container --proxy --download_context_directory
run_startup_hooks

has_module tensorboard || give_up "this TensorBoard needs the package tensorboard, which $DET_PYTHON_EXECUTABLE does not\
 have: install it beforehand with '$DET_PYTHON_EXECUTABLE -m pip install tensorboard', or in a startup-hook.sh"

# It is started by its name, which is beside the interpreter, whether that is on the PATH or not.
if ! command -v tensorboard >/dev/null; then
    PATH="$PATH:$("$DET_PYTHON_EXECUTABLE" -c 'import sysconfig; print(sysconfig.get_path("scripts"))')"
    export PATH
fi

# The client looks whether TensorBoard answers, on this machine; a proxy for the rest of the world does not know.
export no_proxy="${no_proxy:-$NO_PROXY},localhost" NO_PROXY="${NO_PROXY:-$no_proxy},localhost"

version="$("$DET_PYTHON_EXECUTABLE" -c 'from tensorboard.version import VERSION; print(VERSION)')"

exec "$DET_PYTHON_EXECUTABLE" -u -m determined.exec.tensorboard "$version" "$@" \
    > >(tee -p >("$DET_PYTHON_EXECUTABLE" /run/determined/check_ready_logs.py \
        --ready-regex "TensorBoard contains metrics" \
        --waiting-regex "TensorBoard (is waiting for|waits on) metrics"))
