-- Who sees and writes which runs and checkpoints. No DELETE for anybody, no UPDATE of checkpoints; no INSERT or UPDATE
-- for a front role.
set local role durable_owner;

alter table durable.runs enable row level security;
alter table durable.runs force row level security;

create policy refuse_owner on durable.runs for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.runs for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.runs for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.runs for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.runs for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.runs for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_tenant on durable.runs for update to durable_steward
using (tenant_id = durable.current_tenant());

create policy update_all on durable.runs for update to durable_janitor
using (true);

alter table durable.checkpoints enable row level security;
alter table durable.checkpoints force row level security;

create policy refuse_owner on durable.checkpoints for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.checkpoints for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.checkpoints for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.checkpoints for select to durable_auditor
using (true);

create policy insert_own on durable.checkpoints for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
