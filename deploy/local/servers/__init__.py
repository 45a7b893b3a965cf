"""PostgreSQL and NATS as child processes, from the binaries that come with the ``local`` extra."""
