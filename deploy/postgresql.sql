-- Beside equipoise_writer (src/equipoise/ledger/writer_role.sql): what the service keeps for itself.
-- Run as the owner of the ledger after `equipoise token new` has made the tables.
GRANT SELECT ON service_tokens TO equipoise_writer;   -- tokens are made and revoked by the owner alone
GRANT SELECT, INSERT, DELETE ON service_sessions TO equipoise_writer;
GRANT SELECT, INSERT ON service_marks TO equipoise_writer;
