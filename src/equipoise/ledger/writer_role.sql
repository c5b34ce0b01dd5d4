-- A role for the programs that write to a ledger: they add events and never change one.
-- Run as the owner of the tables, once, in the ledger's database and schema; then give the role a
-- password (ALTER ROLE equipoise_writer LOGIN PASSWORD '…') or grant it to existing users.
-- The owner alone can change the schema, upgrade it, and rewrite tables after people were erased.
CREATE ROLE equipoise_writer NOLOGIN;
GRANT SELECT ON ledger_schema TO equipoise_writer;
GRANT SELECT, INSERT ON events, command_keys TO equipoise_writer;
GRANT SELECT, INSERT, UPDATE ON audits, people, state_cache TO equipoise_writer;

