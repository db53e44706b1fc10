-- Who sees and writes which states, sessions and events. No DELETE for anybody, no UPDATE of events; no INSERT or
-- UPDATE for a front role.
set local role durable_owner;

-- State of an app is the whole tenant's.
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
