-- Who sees and writes which tools. No DELETE for anybody; no INSERT or UPDATE for a front role.
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
