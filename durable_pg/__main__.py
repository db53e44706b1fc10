"""python -m durable_pg is durable-pg."""

from durable_pg.cli import app

app(prog_name="durable-pg")
