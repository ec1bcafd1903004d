//! Integration tests, one module a topic.

mod canned;
mod collect;
mod fake_server;
mod openai_answers;
mod openai_check;
mod openai_faults;
mod openai_tls;
mod replay;
