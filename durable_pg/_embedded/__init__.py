"""The embedded Postgres's own programs, for the server of `durable-pg up` and the one of the pytest plugin."""
