-- Who sees and writes which sessions. No DELETE for anybody; no INSERT or UPDATE for a front role.
set local role durable_owner;

alter table durable.sessions enable row level security;
alter table durable.sessions force row level security;

create policy refuse_owner on durable.sessions for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.sessions for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.sessions for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.sessions for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.sessions for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.sessions for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_tenant on durable.sessions for update to durable_steward
using (tenant_id = durable.current_tenant());
