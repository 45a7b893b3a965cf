#!/bin/bash
# Entrypoint of notebooks: docs/reference/harness-protocol.md 6.5.

source /run/determined/task-setup.sh
set -e

SHELL="$(getent passwd "$(whoami)" | cut -d: -f7)"
export SHELL="${SHELL:-/bin/bash}"

"$DET_PYTHON_EXECUTABLE" -m determined.exec.prep_container --resources --proxy --download_context_directory
run_startup_hooks

has_module jupyterlab || give_up "this notebook needs JupyterLab, which $DET_PYTHON_EXECUTABLE does not have:\
 install it beforehand with '$DET_PYTHON_EXECUTABLE -m pip install jupyterlab', or in a startup-hook.sh"

"$DET_PYTHON_EXECUTABLE" /run/determined/jupyter/check_idle.py &

export JUPYTER_CONFIG_DIR=/run/determined/jupyter/config
export JUPYTER_DATA_DIR=/run/determined/jupyter/data
export JUPYTER_RUNTIME_DIR=/run/determined/jupyter/runtime

tls=()
if [ -f /run/determined/jupyter/jupyterCert.pem ]; then
    tls=(--ServerApp.certfile=/run/determined/jupyter/jupyterCert.pem
        --ServerApp.keyfile=/run/determined/jupyter/jupyterKey.key)
fi

exec "$DET_PYTHON_EXECUTABLE" -m jupyter lab \
    --ServerApp.port="$NOTEBOOK_PORT" \
    --ServerApp.port_retries=0 \
    --ServerApp.ip='*' \
    --ServerApp.allow_origin='*' \
    --ServerApp.allow_root=True \
    --ServerApp.base_url="/proxy/$DET_TASK_ID/" \
    --ServerApp.open_browser=False \
    --ServerApp.token="$DET_NOTEBOOK_TOKEN" \
    --ServerApp.trust_xheaders=True \
    --ServerApp.root_dir=/ \
    --ContentsManager.preferred_dir="$PWD" \
    --Application.log_format='%(levelname)s: [%(name)s] %(message)s' \
    "${tls[@]}" \
    2> >(tee -p >("$DET_PYTHON_EXECUTABLE" /run/determined/check_ready_logs.py \
        --ready-regex "^.*Jupyter Server .* is running.*$") >&2)
