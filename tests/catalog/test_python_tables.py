"""durable_pg.tables says what the live catalog says, no more and no less."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import ForeignKeyConstraint, Table, UniqueConstraint, create_engine, func, insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import PrimaryKeyConstraint

from durable_pg import tables
from tests.support.calls import append, open_session
from tests.support.harness import Database, rows

# alembic_version is Alembic's own; nobody queries it.
COLUMNS = """
select c.relname as name, array_agg(format('%s %s%s', a.attname,
    format_type(case when t.typtype = 'd' then t.typbasetype else t.oid end, null),
    case when a.attnotnull then ' not null' else '' end) order by a.attnum) as found
from pg_class as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type as t on t.oid = a.atttypid
where c.relnamespace = 'durable'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'alembic_version'
group by c.relname
"""
KEYS = """
select c.relname as name, array_agg(format('%s %s', k.conname, pg_get_constraintdef(k.oid))) as found
from pg_constraint as k
join pg_class as c on c.oid = k.conrelid
where c.relnamespace = 'durable'::regnamespace and k.contype in ('p', 'u', 'f') and c.relname <> 'alembic_version'
group by c.relname
"""
INDEXES = """
select c.relname as name, array_agg(format('%s%s (%s) %s',
    case when i.indisunique then 'unique ' else '' end, x.relname,
    (select string_agg(pg_get_indexdef(x.oid, place, true), ', ' order by place)
    from generate_series(1, i.indnkeyatts) as place),
    lower(coalesce(pg_get_expr(i.indpred, i.indrelid), '')))) as found
from pg_index as i
join pg_class as x on x.oid = i.indexrelid
join pg_class as c on c.oid = i.indrelid
where c.relnamespace = 'durable'::regnamespace and c.relname <> 'alembic_version'
    and not exists (select from pg_constraint as k where k.conindid = x.oid and k.contype in ('p', 'u', 'x'))
group by c.relname
"""


DIALECT: Any = postgresql.dialect  # has no annotations


def columns(table: Table) -> list[str]:
    return [
        f"{c.name} {c.type.compile(dialect=DIALECT()).lower()}{'' if c.nullable else ' not null'}"
        for c in table.columns
    ]


def keys(table: Table) -> list[str]:
    found = []
    for key in table.constraints:
        if isinstance(key, (PrimaryKeyConstraint, UniqueConstraint, ForeignKeyConstraint)):
            names = ", ".join(column.name for column in key.columns)
            kind = {PrimaryKeyConstraint: "PRIMARY KEY", UniqueConstraint: "UNIQUE"}.get(type(key), "FOREIGN KEY")
            line = f"{key.name} {kind} ({names})"
            if isinstance(key, ForeignKeyConstraint):
                targets = ", ".join(element.column.name for element in key.elements)
                line += f" REFERENCES {key.referred_table.name}({targets})"
            found.append(line)
    return sorted(found)


def indexes(table: Table) -> list[str]:
    found = []
    for index in table.indexes:
        names = ", ".join(column.name for column in index.columns)
        condition = index.dialect_options["postgresql"]["where"]
        where = "" if condition is None else str(condition)
        # As Postgres prints an expression that is more than a column.
        where = f"({where})" if " " in where else where
        found.append(f"{'unique ' if index.unique else ''}{index.name} ({names}) {where}")
    return sorted(found)


@pytest.mark.parametrize(("query", "of"), [(COLUMNS, columns), (KEYS, keys), (INDEXES, indexes)])
def test_tables_are_those_of_the_catalog(module_db: Database, query: str, of: Any) -> None:
    with module_db.superuser() as root:
        root.execute("set local search_path = durable, pg_catalog")
        live: dict[str, list[str]] = {row["name"]: row["found"] for row in root.execute(query.encode()).fetchall()}
    ours = {table.name: of(table) for table in tables.metadata.tables.values()}
    if query is not COLUMNS:  # their order says nothing
        live = {name: sorted(found) for name, found in live.items()}
    assert {name: found for name, found in ours.items() if found} == live


def test_every_table_is_exported_and_in_schema_durable() -> None:
    exported = {getattr(tables, name).fullname for name in tables.__all__ if name != "metadata"}
    assert exported == set(tables.metadata.tables)
    assert all(name.startswith("durable.") for name in exported)


def test_an_app_reads_its_own_rows_and_content_as_it_was_sent(db: Database) -> None:
    with db.as_app() as app:
        mine = open_session(app)
        append(app, mine, content='{"parts": [{"text": "a\\u0000b"}]}')
    with db.as_app(user="U2") as app:
        append(app, open_session(app), content='"another user"')
    engine = create_engine(db.url("app").replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    query = select(tables.events.c.session_uid, func.durable.unescape_json(tables.events.c.content))
    with engine.begin() as connection:
        connection.execute(select(func.durable.act_as("T1", "U1")))
        (found,) = connection.execute(query).all()
    assert isinstance(found[0], UUID)
    assert tuple(found) == (mine, {"parts": [{"text": "a\x00b"}]})


def test_an_app_can_not_insert_through_them(db: Database) -> None:
    before = rows(db, "app_states")
    engine = create_engine(db.url("app").replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    with pytest.raises(ProgrammingError, match="permission denied for table app_states"), engine.begin() as connection:
        connection.execute(select(func.durable.act_as("T1", "U1")))
        connection.execute(insert(tables.app_states).values(tenant_id="T1", app_name="a", state={}, revision=0))
    assert rows(db, "app_states") == before
