# Sourced first by every entrypoint, before `set -e`: output by name, a Python that works, and a home.
# Contract: docs/reference/harness-protocol.md 6.1.

TCD_STARTUP_HOOK="${DET_RUN_DIR:-/run/determined}/dynamic-tcd-startup-hook.sh"

# Ends the task with one sentence in its log and in its exit status: the kubelet, or whoever else started it, reads the file.
give_up() {
    echo "ERROR: $1" >&2
    local file
    for file in "${DET_RUN_DIR:-/run/determined}/termination-log" /dev/termination-log; do
        if [ -w "$file" ]; then
            printf '%s' "$1" >"$file"
            break
        fi
    done
    exit 1
}

# Whether the Python of the task has a module; hooks may have installed it, so it is looked for after them.
has_module() {
    "$DET_PYTHON_EXECUTABLE" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)" 2>/dev/null
}

# Sources the hook of the cluster and the one of the user's context; after `set -e` a failing command ends the task.
run_startup_hooks() {
    set -x
    if [ -f "$TCD_STARTUP_HOOK" ]; then
        . "$TCD_STARTUP_HOOK"
    fi
    if [ -f ./startup-hook.sh ]; then
        . ./startup-hook.sh
    fi
    { set +x; } 2>/dev/null
}

# An entrypoint that was here before has all the rest in its environment.
if [ -n "$TASK_IS_SET_UP" ]; then
    unset TASK_IS_SET_UP
    return
fi

# Launchers open the container's output by these names, so that workers started over ssh or MPI log here and not through
# the chief. This shell later becomes the task by `exec`, so its pid stays valid.
mkdir -p /run/determined/train/logs
ln -sf "/proc/$$/fd/1" /run/determined/train/logs/stdout.log
ln -sf "/proc/$$/fd/2" /run/determined/train/logs/stderr.log

export PATH="/run/determined/pythonuserbase/bin:$PATH"
export DET_PYTHON_EXECUTABLE="${DET_PYTHON_EXECUTABLE:-python3}"

if ! "$DET_PYTHON_EXECUTABLE" --version >/dev/null 2>&1; then
    give_up "cannot run '$DET_PYTHON_EXECUTABLE --version' as user $(id -u); a task needs Python 3.8 or newer that its user may execute\
 (its path can be set with DET_PYTHON_EXECUTABLE)"
fi

if [ -z "$DET_SKIP_PIP_INSTALL" ]; then
    # A failure shows up at the first use of the package; images that bring it along need no index.
    "$DET_PYTHON_EXECUTABLE" -m pip install -q --user /opt/determined/wheels/determined*.whl
# Only whether it is there: importing it takes longer than all the rest, and comes next anyway.
elif ! "$DET_PYTHON_EXECUTABLE" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("determined").origin)' \
    >/dev/null 2>&1; then
    give_up "DET_SKIP_PIP_INSTALL is set, but '$DET_PYTHON_EXECUTABLE' cannot import determined"
fi

if [ "$HOME" = / ]; then
    HOME="$(getent passwd "$UID" | cut -d: -f6)"
    export HOME="${HOME:-$PWD}"
fi
