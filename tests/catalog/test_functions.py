"""Every function of the schema, and that every object says what it is for."""

from tests.catalog.faults import faults
from tests.support.harness import Database

# Helpers that take an identity to look at it; every other `me` is a caller's first and optional argument.
LOOK_AT_ME = ["check_event", "check_me", "is_me", "refuse_me"]


def test_every_plpgsql_function_pins_its_search_path(db: Database) -> None:
    found = faults(
        db,
        """
        select p.oid::regprocedure::text from pg_proc as p inner join pg_language as l on l.oid = p.prolang
        where p.pronamespace = 'durable'::regnamespace and l.lanname = 'plpgsql'
            and p.proconfig is distinct from array['search_path=pg_catalog, pg_temp']
        """,
    )
    assert found == []


def test_every_sql_function_has_a_parsed_body_and_no_setting(db: Database) -> None:
    found = faults(
        db,
        """
        select p.oid::regprocedure::text from pg_proc as p inner join pg_language as l on l.oid = p.prolang
        where p.pronamespace = 'durable'::regnamespace and l.lanname = 'sql'
            and (p.prosqlbody is null or p.proconfig is not null)
        """,
    )
    assert found == []


def test_there_is_no_other_language(db: Database) -> None:
    found = faults(
        db,
        """
        select p.oid::regprocedure::text from pg_proc as p inner join pg_language as l on l.oid = p.prolang
        where p.pronamespace = 'durable'::regnamespace and (l.lanname not in ('sql', 'plpgsql') or p.prokind <> 'f')
        """,
    )
    assert found == []


def test_a_name_has_one_function(db: Database) -> None:
    """So comments, grants and drops leave the parameters out, and a call without names finds no second meaning."""
    found = faults(
        db,
        """
        select p.proname from pg_proc as p
        where p.pronamespace = 'durable'::regnamespace group by p.proname having count(*) > 1
        """,
    )
    assert found == []


def test_public_executes_nothing(db: Database) -> None:
    found = faults(
        db,
        """
        select p.oid::regprocedure::text from pg_proc as p
        cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
        where p.pronamespace = 'durable'::regnamespace and a.grantee = 0
        """,
    )
    assert found == []


def test_a_security_definer_belongs_to_a_back_role(db: Database) -> None:
    found = faults(
        db,
        """
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'durable'::regnamespace and p.prosecdef
            and p.proowner not in ('durable_engine'::regrole, 'durable_steward'::regrole, 'durable_janitor'::regrole)
        """,
    )
    assert found == []


def test_a_back_role_owns_functions_only(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s %s', classid::regclass, objid) from pg_shdepend
        where deptype = 'o' and dbid = (select oid from pg_database where datname = current_database())
            and refobjid::regrole::text in ('durable_engine', 'durable_steward', 'durable_janitor')
            and classid not in ('pg_proc'::regclass, 'pg_default_acl'::regclass)
        """,
    )
    assert found == []


def test_me_comes_first_and_may_be_left_out(db: Database) -> None:
    found = faults(
        db,
        """
        select p.proname from pg_proc as p
        where p.pronamespace = 'durable'::regnamespace and 'me' = any (p.proargnames) and not (
            p.proargnames[1] = 'me' and p.proargtypes[0] = 'text'::regtype
            and p.pronargdefaults = p.pronargs
            and pg_get_function_arguments(p.oid) like 'me text DEFAULT NULL::text%'
        )
        """,
    )
    assert found == LOOK_AT_ME


def test_a_parameter_has_no_prefix(db: Database) -> None:
    found = faults(
        db,
        """
        select format('%s %s', p.proname, a.name) from pg_proc as p cross join unnest(p.proargnames) as a (name)
        where p.pronamespace = 'durable'::regnamespace and (a.name ~ '^(p|v|in|arg)?_' or a.name = '')
        """,
    )
    assert found == []


def test_what_reads_is_no_security_definer(db: Database) -> None:
    found = faults(
        db,
        """
        select p.proname from pg_proc as p
        where p.pronamespace = 'durable'::regnamespace and p.prosecdef and p.provolatile <> 'v'
        """,
    )
    assert found == []


def test_every_object_has_a_comment(db: Database) -> None:
    found = faults(
        db,
        """
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'durable'::regnamespace and coalesce(obj_description(p.oid, 'pg_proc'), '') = ''
        union all
        select c.oid::regclass::text from pg_class as c
        where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r'
            and coalesce(obj_description(c.oid, 'pg_class'), '') = ''
        union all
        select t.oid::regtype::text from pg_type as t
        where t.typnamespace = 'durable'::regnamespace and t.typcategory <> 'A'
            and not exists (select from pg_class as c where c.oid = t.typrelid and c.relkind <> 'c')
            and coalesce(obj_description(t.oid, 'pg_type'), '') = ''
        union all
        select 'schema' where coalesce(obj_description('durable'::regnamespace, 'pg_namespace'), '') = ''
        """,
    )
    assert found == []


def test_a_comment_names_the_states_it_raises(db: Database) -> None:
    """The SQLSTATEs that a body raises, itself or by the checks that all share, are promised in its comment."""
    found = faults(
        db,
        """
        with promised as (
            select p.proname, code[1] as sqlstate from pg_proc as p
            cross join regexp_matches(p.prosrc, 'errcode = ''([0-9A-Z]{5})''', 'g') as code
            where p.pronamespace = 'durable'::regnamespace
            union
            select p.proname, shared.sqlstate from pg_proc as p
            inner join (values
                ('refuse_argument', '22W03'), ('check_identifier', '22W01'), ('check_key_size', '22W01'),
                ('refuse_effect', '42W07'), ('refuse_run', '42W05'), ('check_isolation', '55W05'), ('check_me', '42W02')
            ) as shared (name, sqlstate)
                on p.prosrc ~ format('durable[.]%s[(]', shared.name)
            where p.pronamespace = 'durable'::regnamespace
        )
        select format('%s %s', r.proname, r.sqlstate) from promised as r
        inner join pg_proc as p on p.pronamespace = 'durable'::regnamespace and p.proname = r.proname
        where strpos(obj_description(p.oid, 'pg_proc'), r.sqlstate) = 0
        """,
    )
    assert found == []
