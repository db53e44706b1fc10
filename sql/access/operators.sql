-- Who sees and writes which tools and audit rows. No DELETE for anybody, no UPDATE of audit_log; no INSERT or UPDATE
-- for a front role.
set local role durable_owner;

alter table durable.tools enable row level security;
alter table durable.tools force row level security;

create policy refuse_owner on durable.tools for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_tenant on durable.tools for select to durable_app, durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.tools for select to durable_auditor
using (true);

create policy insert_tenant on durable.tools for insert to durable_steward
with check (tenant_id = durable.current_tenant());

create policy update_tenant on durable.tools for update to durable_steward
using (tenant_id = durable.current_tenant());

-- An app leaves rows only of effects that it resolved on its own word; a maintainer acts as nobody.
alter table durable.audit_log enable row level security;
alter table durable.audit_log force row level security;

create policy refuse_owner on durable.audit_log for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_tenant on durable.audit_log for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.audit_log for select to durable_auditor
using (true);

create policy insert_tenant on durable.audit_log for insert to durable_steward
with check (tenant_id = durable.current_tenant() and acted_by = durable.current_user_id());

create policy insert_own_word on durable.audit_log for insert to durable_engine
with check (
    tenant_id = durable.current_tenant() and acted_by = durable.current_user_id() and action = 'resolve_effect'
);

create policy insert_all on durable.audit_log for insert to durable_janitor
with check (acted_by is null);
