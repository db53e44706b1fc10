"""The parts of durable_pg.migrate; nothing in here is a public name."""
