#!/bin/sh
# Starts PostgreSQL as the official image would, from the same variables; the data is complete or not there at all.
set -eu
if [ ! -e "$PGDATA" ]; then
  new=$(dirname "$PGDATA")/new
  rm -rf "$new" && mkdir -p "$new"
  if [ -z "${POSTGRES_PASSWORD_FILE:-}" ]; then
    POSTGRES_PASSWORD_FILE=/tmp/password
    (umask 077 && printf %s "$POSTGRES_PASSWORD" > "$POSTGRES_PASSWORD_FILE")
  fi
  initdb -D "$new" -U "$POSTGRES_USER" -E UTF8 --locale=C.UTF-8 --auth=scram-sha-256 --pwfile="$POSTGRES_PASSWORD_FILE"
  echo "host all all all scram-sha-256" >> "$new/pg_hba.conf"
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$new" postgres
  mv "$new" "$PGDATA"
  rm -f /tmp/password
fi
unset POSTGRES_PASSWORD
# Volumes can have been given to a group since, and then it would refuse to start.
chmod 0700 "$PGDATA"
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp "$@"
