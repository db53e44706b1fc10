"""What a session on the server may still hold after a call."""

import json
from typing import Any

OF_SESSION = "select jsonb_object_agg(name, setting)::text from pg_settings"
# Of an identity an ended transaction leaves '' behind.
LEFT_BEHIND = """
select (select string_agg(name, ' ') from pg_cursors where name <> ''),
    (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
    (select count(*) from pg_listening_channels()), pg_my_temp_schema()::text,
    coalesce(current_setting('durable.tenant_id', true), ''), coalesce(current_setting('durable.user_id', true), '')
"""
NOTHING = (None, 0, 0, "0", "", "")
PREPARED = "select statement from pg_prepared_statements"


def own_settings(row: tuple[Any, ...]) -> dict[str, str]:
    """Return them without what a connection is made with, and what there is only after PL/pgSQL was used."""
    found: dict[str, str] = json.loads(row[0])
    made_with = ("application_name", "client_encoding")
    return {name: value for name, value in found.items() if name not in made_with and "." not in name}
