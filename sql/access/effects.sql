-- Who sees and writes which effects, and which calls of them. No DELETE for anybody, no UPDATE of effect_calls; no
-- INSERT or UPDATE for a front role.
set local role durable_owner;

-- An effect of the scope tenant is meant for all users of the tenant: they see it, and a run of theirs may begin it
-- again.
alter table durable.effects enable row level security;
alter table durable.effects force row level security;

create policy refuse_owner on durable.effects for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.effects for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and (user_id = durable.current_user_id() or scope = 'tenant'));

create policy select_tenant on durable.effects for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.effects for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.effects for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy update_own on durable.effects for update to durable_engine
using (tenant_id = durable.current_tenant() and (user_id = durable.current_user_id() or scope = 'tenant'));

create policy update_tenant on durable.effects for update to durable_steward
using (tenant_id = durable.current_tenant());

create policy update_all on durable.effects for update to durable_janitor
using (true);

alter table durable.effect_calls enable row level security;
alter table durable.effect_calls force row level security;

create policy refuse_owner on durable.effect_calls for all to durable_owner
using (tenant_id = durable.refuse_owner());

create policy select_own on durable.effect_calls for select to durable_app, durable_engine
using (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());

create policy select_tenant on durable.effect_calls for select to durable_operator, durable_steward
using (tenant_id = durable.current_tenant());

create policy select_all on durable.effect_calls for select to durable_auditor, durable_janitor
using (true);

create policy insert_own on durable.effect_calls for insert to durable_engine
with check (tenant_id = durable.current_tenant() and user_id = durable.current_user_id());
