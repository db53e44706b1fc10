-- Who sees and writes which calls of effects. No UPDATE and no DELETE for anybody.
set local role durable_owner;

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
