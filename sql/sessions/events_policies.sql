-- Who sees and writes which events. No UPDATE and no DELETE for anybody; no INSERT for a front role.
set local role durable_owner;

alter table durable.events enable row level security;
alter table durable.events force row level security;

create policy refuse_owner on durable.events for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.events for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.events for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.events for select to durable_auditor
using (true);

create policy insert_own on durable.events for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
