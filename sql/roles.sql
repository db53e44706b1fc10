-- The eight roles, the schema, and the migration login's right to become their owners.
-- For the login that migrates: needs CREATEROLE the first time, never SUPERUSER. Run again, it changes nothing.
-- Refuses (42W08) with the exact statements for a DBA in DETAIL when this login may not do it itself; a runtime login
-- (42W09) and a database that is not in UTF8 (22W03) before anything is made.
do $roles$
begin
    -- First of all: the path of this login may lead through a schema where an application can make functions.
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

    declare
        v_owner_and_back constant text[] := array['durable_owner', 'durable_engine', 'durable_steward', 'durable_janitor'];
        v_front constant text[] := array['durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor'];
        v_modern constant boolean := current_setting('server_version_num')::integer >= 160000;
        v_may_set constant text := case when v_modern then 'SET' else 'MEMBER' end;
        v_login record;
        v_role text;
        v_statement text;
        v_done boolean;
        v_todo text[] := '{}';
        v_attributes text;
        v_held text;
    begin
        select string_agg(quote_ident(r.rolname), ', ' order by r.rolname) into v_held
        from pg_catalog.pg_roles as r
        where
            r.rolname = any (v_front)
            and (pg_catalog.pg_has_role(session_user, r.oid, 'USAGE') or pg_catalog.pg_has_role(session_user, r.oid, v_may_set))
            and not exists (select from pg_catalog.pg_roles as l where l.rolname = session_user and l.rolsuper);
        if v_held is not null then
            raise exception using
                errcode = '42W09',
                message = format('%I is a runtime login (%s); it must never migrate', session_user, v_held),
                detail = 'Whoever migrates can become the owner; an application that could would be bound by no rule.',
                hint = format('Connect as the migration login. If %I is meant to be that one, it must not hold %s.', session_user, v_held),
                schema = 'durable';
        end if;

        if current_setting('server_encoding') <> 'UTF8' then
            raise exception using
                errcode = '22W03',
                message = format('durable_pg needs a database in UTF8, this one is in %s', current_setting('server_encoding')),
                detail = 'The reversible escape for NUL and lone surrogates, and every digest, are defined over UTF-8.',
                hint = 'Create the database with ENCODING ''UTF8'' TEMPLATE template0.',
                schema = 'durable';
        end if;

        select r.rolname, r.rolsuper, r.rolcreaterole into strict v_login
        from pg_catalog.pg_roles as r
        where r.rolname = session_user;

        -- Otherwise, on a server that sets it, the maker of a role would be a member of all eight.
        if v_modern then
            perform set_config('createrole_self_grant', '', true);
        end if;

        foreach v_role in array v_owner_and_back || v_front loop
            select concat_ws(
                ' ',
                case when r.rolcanlogin then 'nologin' end,
                case when r.rolsuper then 'nosuperuser' end,
                case when r.rolbypassrls then 'nobypassrls' end,
                case when r.rolcreaterole then 'nocreaterole' end,
                case when r.rolcreatedb then 'nocreatedb' end,
                case when r.rolreplication then 'noreplication' end
            )
            into v_attributes
            from pg_catalog.pg_roles as r
            where r.rolname = v_role;

            if not found then
                v_statement := format('create role %I nologin', v_role);
                if v_login.rolsuper or v_login.rolcreaterole then
                    begin
                        execute v_statement;
                    exception
                        -- Another database of this server is being migrated at this moment.
                        when duplicate_object or unique_violation then null;
                    end;
                else
                    v_todo := v_todo || v_statement;
                end if;
            elsif v_attributes <> '' then
                v_todo := v_todo || format('alter role %I %s', v_role, v_attributes);
            end if;
        end loop;

        -- The eight are members of nothing: no front role may reach a back role, the owner, or pg_write_all_data.
        for v_statement in
            select format('revoke %I from %I', granted.rolname, member.rolname)
            from pg_catalog.pg_auth_members as m
            inner join pg_catalog.pg_roles as granted on granted.oid = m.roleid
            inner join pg_catalog.pg_roles as member on member.oid = m.member
            where member.rolname = any (v_owner_and_back || v_front)
            order by 1
        loop
            v_todo := v_todo || v_statement;
        end loop;

        foreach v_role in array v_owner_and_back loop
            v_statement := format('grant %I to %I', v_role, session_user)
                || case when v_modern then ' with inherit false, set true' else '' end;
            if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role) then
                v_todo := v_todo || v_statement;
            elsif not pg_catalog.pg_has_role(session_user, v_role, v_may_set) then
                if v_modern then
                    v_done := pg_catalog.pg_has_role(session_user, v_role, 'MEMBER WITH ADMIN OPTION');
                else
                    v_done := v_login.rolcreaterole;
                end if;
                if v_done then
                    execute v_statement;
                else
                    v_todo := v_todo || v_statement;
                end if;
            end if;
        end loop;

        select n.nspowner::regrole::text into v_role from pg_catalog.pg_namespace as n where n.nspname = 'durable';
        if not found then
            if not has_database_privilege(session_user, current_database(), 'CREATE') then
                v_todo := v_todo || format('grant create on database %I to %I', current_database(), session_user);
            elsif cardinality(v_todo) = 0 then
                create schema durable authorization durable_owner;
            end if;
        elsif v_role <> 'durable_owner' then
            v_todo := v_todo || 'alter schema durable owner to durable_owner'::text;
        end if;

        -- A login in two front roles would see the sum of both; one that also reaches a back role or the owner sees all.
        for v_statement in
            select format('revoke %s from %I', string_agg(quote_ident(held.rolname), ', ' order by held.rolname), l.rolname)
            from pg_catalog.pg_roles as l
            inner join pg_catalog.pg_roles as held
                on held.rolname = any (v_owner_and_back || v_front)
                and (pg_catalog.pg_has_role(l.oid, held.oid, 'USAGE') or pg_catalog.pg_has_role(l.oid, held.oid, v_may_set))
            where l.rolcanlogin and not l.rolsuper
            group by l.rolname
            having count(*) > 1 and bool_or(held.rolname = any (v_front))
            order by 1
        loop
            v_todo := v_todo || ('/* a login holds one front role: keep one, revoke the others */ ' || v_statement);
        end loop;

        if cardinality(v_todo) > 0 then
            raise exception using
                errcode = '42W08',
                message = format('login %I cannot make the roles of durable_pg ready', session_user),
                detail = array_to_string(v_todo, ';' || chr(10)) || ';',
                hint = 'Have a role that may (CREATEROLE, or the provider''s admin) run the statements in DETAIL in this database, then run the upgrade again.',
                schema = 'durable';
        end if;
    end;
end
$roles$;
