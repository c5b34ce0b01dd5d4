-- Beside equipoise_writer (src/equipoise/ledger/writer_role.sql): what the service keeps for itself.
-- Run as the owner of the ledger after `equipoise token new` has made the tables.
GRANT SELECT, UPDATE (logged_out) ON service_tokens TO equipoise_writer;   -- made and revoked by the owner alone
GRANT SELECT, INSERT, UPDATE ON service_marks TO equipoise_writer;
