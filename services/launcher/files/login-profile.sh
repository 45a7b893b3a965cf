# Sourced by login shells, last in /etc/profile.d: the PATH of the task, with `det` in it, instead of the system's.
# Other users of the container may not read the file, and keep theirs.
if [ -r /run/determined/ssh/path ]; then
    PATH="$(cat /run/determined/ssh/path)"
    export PATH
fi
