"""Postgres keeps the history of AI-agent runs straight: recorded once, never rewritten, shown to its own user only.

The guarantees live in the database (the schema `durable`); this package installs them and is a thin way to call them.
"""

__version__ = "0.1.0.dev0"
