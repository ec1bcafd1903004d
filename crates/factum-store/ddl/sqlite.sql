-- Factum's tables on SQLite. The same on PostgreSQL, with other type names: ddl/postgres.sql.
-- Only integers, text and blobs. Nodes, runs and events are insert-only but for a run's own ending.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cases (
    case_no INTEGER PRIMARY KEY, case_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, profile TEXT NOT NULL,
    created_at INTEGER NOT NULL, last_event INTEGER NOT NULL, chain BLOB, access_revision INTEGER NOT NULL);
CREATE TABLE events (
    case_no INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, chain BLOB NOT NULL,
    PRIMARY KEY (case_no, number));
CREATE TABLE documents (
    doc_no INTEGER PRIMARY KEY, case_no INTEGER NOT NULL, doc_id TEXT NOT NULL, slot TEXT NOT NULL,
    active INTEGER NOT NULL, version INTEGER NOT NULL, text_sha256 BLOB NOT NULL, chars INTEGER NOT NULL,
    followed INTEGER NOT NULL,
    UNIQUE (case_no, doc_id));
CREATE INDEX documents_by_slot ON documents (case_no, slot);
CREATE TABLE versions (
    doc_no INTEGER NOT NULL, version INTEGER NOT NULL, event INTEGER NOT NULL, text_sha256 BLOB NOT NULL,
    chars INTEGER NOT NULL, media TEXT NOT NULL, reading TEXT NOT NULL, layout BLOB, original BLOB,
    PRIMARY KEY (doc_no, version));
CREATE TABLE blobs (sha256 BLOB PRIMARY KEY, kind TEXT NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE case_access (
    case_no INTEGER NOT NULL, principal TEXT NOT NULL, granted INTEGER NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (case_no, principal));
CREATE TABLE doc_access (
    doc_no INTEGER NOT NULL, principal TEXT NOT NULL, case_no INTEGER NOT NULL, granted INTEGER NOT NULL,
    revision INTEGER NOT NULL, frozen_version INTEGER, frozen_active INTEGER,
    PRIMARY KEY (doc_no, principal));
CREATE INDEX doc_access_by_case ON doc_access (case_no, principal);
CREATE TABLE segments (text_sha256 BLOB NOT NULL, rule TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (text_sha256, rule));
CREATE TABLE spec_parts (digest BLOB PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE contexts (
    digest BLOB PRIMARY KEY, principal TEXT NOT NULL, leaf BLOB NOT NULL, reduction BLOB NOT NULL);
CREATE TABLE pages (
    case_no INTEGER NOT NULL, key BLOB NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (case_no, key));
CREATE TABLE results (
    case_no INTEGER NOT NULL, key BLOB NOT NULL, scope INTEGER NOT NULL, run_no INTEGER NOT NULL,
    body BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (case_no, key, scope));
CREATE TABLE runs (
    run_no INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, case_no INTEGER NOT NULL, principal TEXT NOT NULL,
    generator TEXT NOT NULL, profile TEXT NOT NULL, context BLOB NOT NULL, event INTEGER NOT NULL,
    root BLOB NOT NULL, scope INTEGER NOT NULL, started_at INTEGER NOT NULL, finished_at INTEGER, summary TEXT);
CREATE INDEX runs_by_case ON runs (case_no, principal, run_no);
CREATE TABLE heads (
    case_no INTEGER NOT NULL, principal TEXT NOT NULL, generator TEXT NOT NULL, context BLOB NOT NULL,
    planned_root BLOB NOT NULL, planned_event INTEGER NOT NULL, access_revision INTEGER NOT NULL,
    built_root BLOB, built_event INTEGER, built_context BLOB, built_run INTEGER, built_at INTEGER,
    digest BLOB NOT NULL,
    PRIMARY KEY (case_no, principal, generator));
