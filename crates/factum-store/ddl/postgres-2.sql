-- What schema 2 adds.
-- The citations of each result, read out of the result itself.
CREATE VIEW result_citations AS
    SELECT r.case_no AS case_no, r.key AS key, r.scope AS scope, e.value ->> 'doc_id' AS doc_id,
        (e.value ->> 'version')::BIGINT AS version, decode(e.value ->> 'text_sha256', 'hex') AS text_sha256
    FROM results r, LATERAL jsonb_each(convert_from(r.body, 'UTF8')::jsonb -> 'evidence') e;
-- Whole answers of models, by the digest of their input; insert-only. A full build's have a scope of their own.
CREATE TABLE generations (
    digest BYTEA NOT NULL, scope BIGINT NOT NULL, run_no BIGINT NOT NULL, body BYTEA NOT NULL, body_digest BYTEA NOT NULL,
    PRIMARY KEY (digest, scope));
