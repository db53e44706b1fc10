-- Who sees and writes which state of a user. No DELETE for anybody; no INSERT or UPDATE for a front role.
set local role durable_owner;

alter table durable.user_states enable row level security;
alter table durable.user_states force row level security;

create policy refuse_owner on durable.user_states for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.user_states for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.user_states for select to durable_operator
using (tenant_id = durable.current_tenant());

create policy select_all on durable.user_states for select to durable_auditor
using (true);

create policy insert_own on durable.user_states for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.user_states for update to durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
