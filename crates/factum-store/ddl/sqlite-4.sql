-- What schema 4 adds.
-- Vectors of passages, made where a search asked for them: by what made them and by the passage's own text. Insert-only. They say nothing that the
-- texts don't, so all of them may be deleted at any time and are made again where they are needed.
CREATE TABLE embedders (embedder_no INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, identity TEXT NOT NULL);
CREATE TABLE passage_vectors (
    case_no INTEGER NOT NULL, embedder_no INTEGER NOT NULL, passage_sha256 BLOB NOT NULL, vector BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (case_no, embedder_no, passage_sha256));
-- Numbers that are given once.
CREATE TABLE counters (name TEXT PRIMARY KEY, last INTEGER NOT NULL);
