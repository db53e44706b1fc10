-- For columns that hold keys and values: state, metadata, detail.
set local role durable_owner;

create domain durable.json_object as jsonb
constraint json_object_is_an_object check (jsonb_typeof(value) = 'object');

comment on domain durable.json_object is 'A JSON object in its stored form; see escape_json.';

grant usage on domain durable.json_object to durable_engine, durable_steward, durable_janitor;
