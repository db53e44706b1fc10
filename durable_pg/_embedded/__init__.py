"""The embedded Postgres, a server in a wheel: one way to start it, for the demo, `durable-pg up` and tests."""
