-- Who sees and writes which state of an app: it is the whole tenant's. No DELETE for anybody; no INSERT or UPDATE for a
-- front role.
set local role durable_owner;

alter table durable.app_states enable row level security;
alter table durable.app_states force row level security;

create policy refuse_owner on durable.app_states for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_tenant on durable.app_states for select to durable_app, durable_operator, durable_engine
using (tenant_id = durable.current_tenant());

create policy select_all on durable.app_states for select to durable_auditor
using (true);

create policy insert_tenant on durable.app_states for insert to durable_engine
with check (tenant_id = durable.current_tenant());

create policy update_tenant on durable.app_states for update to durable_engine
using (tenant_id = durable.current_tenant());
