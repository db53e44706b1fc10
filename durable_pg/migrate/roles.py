"""The eight roles: made by bootstrap(), and the four front roles given to logins by grant_logins()."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from durable_pg._wire.diagnostics import diagnostic, primary_message, sqlstate
from durable_pg.migrate import paths
from durable_pg.migrate.database import TRUSTED_PATH, execute_script, require_transaction, rows, settings
from durable_pg.migrate.errors import (
    DatabaseUnfit,
    DbaMustAct,
    LoginIsRuntime,
    LoginRefused,
    MigrationError,
    statements_of,
)

OWNER = "durable_owner"
BACK = ("durable_engine", "durable_steward", "durable_janitor")
FRONT = {
    "app": "durable_app",
    "operator": "durable_operator",
    "maintainer": "durable_maintainer",
    "auditor": "durable_auditor",
}
ALL = (OWNER, *BACK, *FRONT.values())

_ANOTHER = "A new one is made by: create role <a login of its own> login"
_ATTEMPTS = 20
# Two databases of one server are being migrated: their bootstraps meet in the shared role catalogs.
_COLLISIONS = frozenset({"23505", "42710", "XX000"})

_REFUSALS: dict[str | None, type[MigrationError]] = {"42W09": LoginIsRuntime, "22W03": DatabaseUnfit}


def bootstrap(connection: Connection) -> None:
    """Roles, schema and the login's right to become their owners. Run again, it changes nothing.

    Raises DbaMustAct, with the statements, when this login may not do it.
    """
    require_transaction(connection)
    script = (paths.sql_dir() / "roles.sql").read_text(encoding="utf-8")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            # As the login itself, whatever role the caller is in.
            with connection.begin_nested(), settings(connection, {"search_path": TRUSTED_PATH, "role": "none"}):
                execute_script(connection, script)
            return
        except DBAPIError as error:
            state = sqlstate(error)
            if state == "42W08":
                raise DbaMustAct(
                    primary_message(error),
                    statements=statements_of(diagnostic(error, "message_detail")),
                    hint=diagnostic(error, "message_hint"),
                ) from error
            if state in _REFUSALS:
                raise _REFUSALS[state](primary_message(error), hint=diagnostic(error, "message_hint")) from error
            if state == "42501":
                raise DbaMustAct(
                    f"this login may not make the roles of durable_pg ready: {primary_message(error)}",
                    statements=_createrole_statement(connection),
                    hint="Grant it CREATEROLE for this one run, or have a DBA run sql/roles.sql.",
                ) from error
            collided = state in _COLLISIONS and (state != "XX000" or "concurrently" in primary_message(error))
            if not collided or attempt == _ATTEMPTS:
                raise
            time.sleep(0.02 * attempt + random.random() * 0.05)


def _createrole_statement(connection: Connection) -> tuple[str, ...]:
    return (f"alter role {rows(connection, 'select quote_ident(session_user)')[0][0]} createrole;",)


@dataclass(frozen=True)
class _Login:
    name: str
    quoted: str
    can_login: bool
    inherits: bool
    superuser: bool
    bypasses_rls: bool
    reaches: frozenset[str]
    uses: frozenset[str]


def grant_logins(
    connection: Connection,
    *,
    app: str | None = None,
    operator: str | None = None,
    maintainer: str | None = None,
    auditor: str | None = None,
) -> list[str]:
    """Gives front roles to existing logins. Returns the statements it ran; none when all was so already.

    A login gets one front role: raises LoginRefused when it would be more than that, and DbaMustAct with the GRANT when
    this login may not give it. Nothing is granted unless all can be.
    """
    require_transaction(connection)
    wanted = {"app": app, "operator": operator, "maintainer": maintainer, "auditor": auditor}
    statements, lacking = _planned(connection, wanted)
    if lacking:
        raise DbaMustAct(
            "this login may not grant the front roles",
            statements=tuple(lacking),
            hint="It needs ADMIN OPTION on them (16 and later) or CREATEROLE (14 and 15); a DBA can run these.",
        )
    with settings(connection, {"search_path": TRUSTED_PATH, "role": "none"}):
        for statement in statements:
            execute_script(connection, statement)
    return statements


def with_grants(connection: Connection, refused: DbaMustAct, logins: Mapping[str, str]) -> DbaMustAct:
    """Everything a DBA must run, in one go: what bootstrap() raised, and after it the grants to these logins."""
    try:
        _, lacking = _planned(connection, logins)
        hint = refused.hint
    except LoginRefused as error:
        lacking, hint = [*error.statements], f"{refused.hint} Besides: {error.message}."
    return DbaMustAct(refused.message, statements=(*refused.statements, *lacking), hint=hint)


def _planned(connection: Connection, wanted: Mapping[str, str | None]) -> tuple[list[str], list[str]]:
    """The GRANT statements for these logins, and those of them that this login may not run."""
    named = [(kind, login) for kind, login in wanted.items() if login is not None]
    _refuse_twice(named)
    modern = int(rows(connection, "select current_setting('server_version_num')")[0][0]) >= 160000
    statements: list[tuple[str, str]] = []
    for kind, name in named:
        role = FRONT[kind]
        login = _look_up(connection, name, kind, modern)
        _refuse_unfit(login, role, modern)
        if role not in login.uses:
            statements.append((role, f"grant {role} to {login.quoted}{' with inherit true' if modern else ''}"))
    lacking = [statement + ";" for role, statement in statements if not _may_grant(connection, role, modern)]
    return [statement for _, statement in statements], lacking


def _refuse_twice(named: list[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for kind, login in named:
        if login in seen:
            raise LoginRefused(
                f"login {login} can't be both {seen[login]} and {kind}: policies of two front roles add up",
                hint=f"Name one login for each. {_ANOTHER}",
            )
        seen[login] = kind


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _look_up(connection: Connection, name: str, kind: str, modern: bool) -> _Login:
    found = rows(
        connection,
        "select quote_ident(r.rolname), r.rolcanlogin, r.rolinherit, r.rolsuper, r.rolbypassrls"
        " from pg_catalog.pg_roles as r where r.rolname = :name",
        name=name,
    )
    if not found:
        raise LoginRefused(
            f"there is no login {name}",
            statements=(f"create role {_quote(name)} login;",),
            hint=f"Create it, give it a password (\\password in psql), and run this again with --{kind}-login {name}.",
        )
    held = rows(
        connection,
        "select r.rolname::text, pg_catalog.pg_has_role(:name, r.oid, :way),"
        " pg_catalog.pg_has_role(:name, r.oid, 'USAGE')"
        " from pg_catalog.pg_roles as r where r.rolname = any (:roles)",
        name=name,
        way="SET" if modern else "MEMBER",
        roles=list(ALL),
    )
    quoted, can_login, inherits, superuser, bypasses_rls = found[0]
    return _Login(
        name=name,
        quoted=quoted,
        can_login=can_login,
        inherits=inherits,
        superuser=superuser,
        bypasses_rls=bypasses_rls,
        reaches=frozenset(role for role, settable, used in held if settable or used),
        uses=frozenset(role for role, _, used in held if used),
    )


def _refuse_unfit(login: _Login, role: str, modern: bool) -> None:
    # Never a REVOKE or an ALTER ROLE NOSUPERUSER: who pipes these statements into psql must not lose a superuser.
    another = f"Give {role} to another login. {_ANOTHER}"
    if login.name in ALL:
        raise LoginRefused(f"{login.name} is one of durable_pg's own roles, which nobody logs in as", hint=another)
    if login.superuser or login.bypasses_rls:
        what = "is a superuser" if login.superuser else "bypasses row-level security"
        raise LoginRefused(
            f"login {login.name} {what}: no rule would bind it",
            hint=another,
        )
    if not login.can_login:
        raise LoginRefused(
            f"role {login.name} can't log in; front roles are given to logins",
            statements=(f"alter role {login.quoted} login;",),
        )
    others = sorted(login.reaches - {role})
    if others:
        raise LoginRefused(
            f"login {login.name} already reaches {', '.join(others)}: it would see the sum of both",
            hint=f"{another} Or revoke the other membership, which may come through a group.",
        )
    if not modern and not login.inherits:
        raise LoginRefused(
            f"login {login.name} is NOINHERIT: it would hold {role} and none of its privileges",
            statements=(f"alter role {login.quoted} inherit;",),
        )


def _may_grant(connection: Connection, role: str, modern: bool) -> bool:
    found = rows(
        connection,
        # A role that is not there yet is made by whoever has CREATEROLE, who then may grant it.
        "select l.rolsuper or case when :modern and r.oid is not null"
        " then pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER WITH ADMIN OPTION') else l.rolcreaterole end"
        " from pg_catalog.pg_roles as l left join pg_catalog.pg_roles as r on r.rolname = :role"
        " where l.rolname = session_user",
        role=role,
        modern=modern,
    )
    return bool(found[0][0])


def requested(logins: Mapping[str, str | None] | None) -> dict[str, str]:
    """The logins that were named, by front role's short name."""
    return {kind: login for kind, login in (logins or {}).items() if login is not None}
