"""Who looks: finds out what the login is, makes the transaction read only, and sets its identity where it needs one."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from sqlalchemy import text
from sqlalchemy.engine import Connection

from durable_pg.command_errors import BadRequest, CommandError

Role = Literal["app", "operator", "auditor"]

_HINT_LOGINS = (
    "Use the URL of a login in durable_app (with --tenant and --user), in durable_operator (with --tenant), "
    "or in durable_auditor."
)
# Under READ COMMITTED, since verdicts refuse any other; whatever search_path the login has.
_PREPARE = """
set transaction isolation level read committed read only;
set local search_path = pg_catalog, pg_temp
"""
_LOGIN = """
select current_user::text as login, current_database()::text as database,
    exists (select from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where n.nspname = 'durable' and c.relname = 'runs') as installed,
    (select r.rolsuper from pg_roles as r where r.rolname = current_user) as superuser,
    array(select substr(r.rolname, 9)::text from pg_roles as r
        where r.rolname in ('durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor')
            and pg_has_role(current_user, r.oid, 'USAGE')) as roles
"""


class WrongLogin(BadRequest):
    """The login may not read, or an option belongs to another kind of login."""


class NotFound(CommandError):
    """There is no such run or session, or this login may not see it."""


class Ambiguous(BadRequest):
    """Several runs or sessions fit."""


@dataclass(frozen=True)
class View:
    """What a login sees: `tenant` and `user` are None where it sees all of them."""

    login: str
    role: Role
    tenant: str | None
    user: str | None
    acts_as: str | None


def open_view(
    connection: Connection,
    *,
    tenant: str | None = None,
    user: str | None = None,
    acts_as: str | None = None,
    writes: bool = False,
) -> View:
    """Begin to look, in a transaction in which nothing has been done yet; it becomes READ ONLY unless it `writes`.

    An app login looks as `tenant` and `user`. An operator names the `tenant` and looks as `acts_as` (the name of the
    operating system's user when None); `user` is then whose data is meant. An auditor may leave out both.
    Raises WrongLogin for any other login, and when something is missing.
    """
    for statement in _PREPARE.split(";"):
        connection.execute(text(statement.replace(" read only", "") if writes else statement))
    found = connection.execute(text(_LOGIN)).one()
    if not found.installed:
        raise NotFound(
            f"durable_pg is not installed in database {found.database} (as {found.login})",
            hint="Is it the right database? If so: durable-pg upgrade, as the migration login.",
        )
    role = _role(found.login, found.superuser, found.roles)
    for name, given in (("tenant", tenant), ("user", user), ("as", acts_as)):
        if given is not None and not given.strip():
            raise BadRequest(f"--{name} is empty; is a variable not set?")
    if acts_as is not None and role != "operator":
        raise WrongLogin(
            f"{found.login} is no operator: --as says who looks, and only an operator needs it",
            hint="Leave it out; --user says whose data is meant.",
        )
    if role == "app":
        _require(found.login, "an application's login, which reads as one user", tenant=tenant, user=user)
        acts_as = user
    elif role == "operator":
        _require(found.login, "an operator's login, which reads one tenant", tenant=tenant)
        acts_as = acts_as or _name_of_this_user() or found.login
    if role != "auditor":
        connection.execute(text("select durable.act_as(:tenant, :name)"), {"tenant": tenant, "name": acts_as})
    return View(found.login, role, tenant, user, acts_as)


def _role(login: str, superuser: bool, roles: Sequence[str]) -> Role:
    # A superuser is in every role and sees past row security, as an auditor does.
    if superuser or roles == ["auditor"]:
        return "auditor"
    if "app" in roles:
        return "app"
    if "operator" in roles:
        return "operator"
    if "auditor" in roles:
        return "auditor"
    what = "a maintainer, who may not read content" if roles else "not in any role that may read"
    raise WrongLogin(f"{login} is {what}", hint=_HINT_LOGINS)


def _require(login: str, why: str, **given: str | None) -> None:
    missing = [f"--{name}" for name, found in given.items() if found is None]
    if missing:
        names = " and ".join(missing)
        variables = " and ".join(f"DURABLE_PG_{name[2:].upper()}" for name in missing)
        verb = "are" if len(missing) > 1 else "is"
        raise WrongLogin(f"{names} {verb} missing: {login} is {why}", hint=f"Give {names}, or set {variables}.")


def _name_of_this_user() -> str:
    try:
        return getpass.getuser().strip()
    except (OSError, KeyError):  # a container's user may have no name
        return ""


def now(connection: Connection) -> datetime:
    """Return the time of the database's clock, in UTC."""
    found: datetime = in_utc(connection.execute(text("select clock_timestamp()")).scalar_one())
    return found


def in_utc(moment: Any) -> Any:
    """Return the moment in UTC, whatever zone the session shows; None stays None."""
    return None if moment is None else moment.astimezone(timezone.utc)
