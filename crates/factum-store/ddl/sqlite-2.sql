-- What schema 2 adds.
-- The citations of each result, read out of the result itself.
CREATE VIEW result_citations AS
    SELECT r.case_no AS case_no, r.key AS key, r.scope AS scope, json_extract(e.value, '$.doc_id') AS doc_id,
        json_extract(e.value, '$.version') AS version, unhex(json_extract(e.value, '$.text_sha256')) AS text_sha256
    FROM results r, json_each(CAST(r.body AS TEXT), '$.evidence') e;
-- Whole answers of models, by the digest of their input; insert-only. A full build's have a scope of their own.
CREATE TABLE generations (
    digest BLOB NOT NULL, scope INTEGER NOT NULL, run_no INTEGER NOT NULL, body BLOB NOT NULL, body_digest BLOB NOT NULL,
    PRIMARY KEY (digest, scope));
