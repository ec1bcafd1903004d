//! How answers and conversations read on a terminal.

use std::fmt::Write as _;

use factum_ask::ledger::Status;
use factum_ask::message::WhyIgnored;
use factum_ask::{Answer, AnswerStanding, Conversation, Exchange};
use factum_casefile::Verdict;
use factum_store::ConversationRow;

use crate::moment;
use crate::text::clean;

const QUOTED: usize = 240;

/// An answer with what it rests on.
pub(crate) fn answer(answer: &Answer) -> String {
    let mut out = words(answer);
    out.push('\n');
    out.push_str(&grounding(answer));
    out.push_str(&sources(answer));
    let counts = &answer.counts;
    let _ = write!(out, "{} · {}", answer.conversation_id, answer.generator);
    if let Some(by) = &answer.embeddings {
        let _ = write!(out, " · found by {} too", by.name);
    }
    if counts.requests > 0 {
        let about = if counts.tokens_bounded {
            "at most "
        } else {
            ""
        };
        let _ = write!(
            out,
            " · {}, {about}{} tokens",
            plural(counts.requests as usize, "request"),
            counts.prompt_tokens + counts.new_tokens
        );
    }
    let _ = writeln!(out, " · {:.1} s", answer.seconds);
    out
}

fn plural(count: usize, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {what}{end}")
}

fn words(answer: &Answer) -> String {
    if answer.text.trim().is_empty() {
        return "(The model gave no answer.)\n".to_owned();
    }
    let lines: Vec<String> = answer.text.lines().map(clean).collect();
    lines.join("\n") + "\n"
}

fn grounding(answer: &Answer) -> String {
    let mut out = String::new();
    match answer.status {
        Status::Grounded => {
            let documents: std::collections::BTreeSet<_> = answer
                .refs
                .iter()
                .map(|one| (&one.case_id, &one.doc_id))
                .collect();
            let _ = writeln!(
                out,
                "GROUNDED in {} of {}.",
                plural(answer.refs.len(), "passage"),
                plural(documents.len(), "document")
            );
        }
        Status::Ungrounded => out.push_str("UNGROUNDED: no passage supports this.\n"),
        Status::Missing if answer.violations.contains(&answer.question_id) => {
            out.push_str(
                "NOT DECLARED: the model did not say what this rests on, though it was asked.\n",
            );
        }
        Status::Missing => out.push_str("NOT DECLARED: no document was looked at for this.\n"),
    }
    for sentence in &answer.sentences {
        if sentence.support.verdict == Verdict::Unsupported {
            let _ = writeln!(
                out,
                "UNSUPPORTED by what it cites: {} ({})",
                clean(&sentence.text),
                clean(&sentence.support.detail)
            );
        }
    }
    out
}

fn sources(answer: &Answer) -> String {
    let mut out = String::new();
    let several = answer
        .searches
        .iter()
        .map(|one| &one.case_id)
        .chain(answer.refs.iter().map(|one| &one.case_id))
        .collect::<std::collections::BTreeSet<_>>()
        .len()
        > 1;
    for one in &answer.refs {
        let case = if several {
            format!("{}: ", clean(&one.case_id))
        } else {
            String::new()
        };
        let place = one
            .place
            .as_deref()
            .map(|place| format!(", {place}"))
            .unwrap_or_default();
        let now = match one.fault {
            None => "",
            Some(WhyIgnored::Stale) => " (OUTDATED: the document has another version now)",
            Some(WhyIgnored::Ineligible | WhyIgnored::Unknown) => " (may no longer be shown)",
        };
        let _ = writeln!(
            out,
            "  [{}] {case}{} version {}{}{now}",
            one.display,
            clean(&one.title),
            one.version,
            clean(&place)
        );
        if let Some(quote) = &one.quote {
            let quote = clean(quote);
            let cut: String = quote.chars().take(QUOTED).collect();
            let more = if cut.len() < quote.len() { " …" } else { "" };
            let _ = writeln!(out, "      {cut}{more}");
        }
    }
    out
}

/// All conversations, one a line.
pub(crate) fn conversations(all: &[ConversationRow]) -> String {
    if all.is_empty() {
        return "You have no conversations; `factum ask CASE \"QUESTION\"` begins one.\n"
            .to_owned();
    }
    all.iter()
        .map(|one| {
            format!(
                "{}  {}  {}\n",
                one.conversation_id,
                moment::shown(one.changed_at),
                clean(&one.title)
            )
        })
        .collect()
}

/// A conversation as it stands now.
pub(crate) fn conversation(conversation: &Conversation, exchanges: &[Exchange]) -> String {
    let cases: Vec<String> = conversation
        .cases()
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut out = format!("{} on {}\n", conversation.id(), cases.join(", "));
    let documents: Vec<String> = conversation.documents().into_iter().map(clean).collect();
    if !documents.is_empty() {
        let _ = writeln!(out, "It looks only into {}.", documents.join(", "));
    }
    for exchange in exchanges {
        let _ = writeln!(
            out,
            "\n? {}   ({})",
            clean(&exchange.answer.question),
            moment::shown(exchange.answered_at)
        );
        match exchange.standing {
            AnswerStanding::Current => {}
            AnswerStanding::Outdated => {
                out.push_str("OUTDATED: a document that this rests on has another version now.\n");
            }
            AnswerStanding::Withheld => {
                out.push_str(
                    "WITHHELD: a document that this was made from was withdrawn, or is hidden from you.\n",
                );
                continue;
            }
        }
        out.push_str(&words(&exchange.answer));
        out.push_str(&grounding(&exchange.answer));
        out.push_str(&sources(&exchange.answer));
    }
    if let Some(pending) = conversation.pending() {
        let _ = writeln!(
            out,
            "\n? {}\nNOT FINISHED: `factum conversation resume {}` goes on.",
            clean(pending),
            conversation.id()
        );
    }
    out
}
