#!/bin/sh
# Unpacks the archives 0 to $1-1 of the directory $2 into the directory $3, as the user of the task.

set -e

number=0
while [ "$number" -lt "$1" ]; do
    gzip -d -c "$2/$number.tar.gz" | tar -x -p -f - -C "$3"
    number=$((number + 1))
done
