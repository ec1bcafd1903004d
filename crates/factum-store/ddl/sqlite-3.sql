-- What schema 3 adds.
-- The search index: which passages of which text hold a term. A text's passages are numbered within its case file.
CREATE TABLE search_texts (
    case_no INTEGER NOT NULL, text_sha256 BLOB NOT NULL, first_passage INTEGER NOT NULL, passages INTEGER NOT NULL,
    terms INTEGER NOT NULL, spans BLOB NOT NULL, PRIMARY KEY (case_no, text_sha256)) WITHOUT ROWID;
CREATE TABLE search_segments (
    segment INTEGER PRIMARY KEY, case_no INTEGER NOT NULL, first_passage INTEGER NOT NULL, passages INTEGER NOT NULL);
CREATE INDEX search_segments_by_case ON search_segments (case_no, first_passage);
CREATE TABLE search_blocks (segment INTEGER NOT NULL, first_term TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (segment, first_term));
-- Conversations over case files. State and messages are written in one transaction; messages are insert-only but for a question that failed.
CREATE TABLE conversations (
    conversation_no INTEGER PRIMARY KEY, conversation_id TEXT NOT NULL UNIQUE, principal TEXT NOT NULL, title TEXT NOT NULL, revision INTEGER NOT NULL,
    messages INTEGER NOT NULL, created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, state BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE conversation_cases (conversation_no INTEGER NOT NULL, case_no INTEGER NOT NULL, PRIMARY KEY (conversation_no, case_no));
CREATE TABLE conversation_messages (
    conversation_no INTEGER NOT NULL, place INTEGER NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (conversation_no, place));
