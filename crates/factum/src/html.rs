//! A summary as one HTML page that stands alone. Everything from documents is escaped.

use std::fmt::Write as _;

use factum_casefile::Verdict;

use crate::text::{Citations, Label, Page, notes};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}\
h1{font-size:1.5rem;margin:0}.state{margin:.25rem 0 1.5rem;color:#444}.history{background:#fff4d6;padding:.5rem .75rem}\
li{margin:.4rem 0}a{color:#0b57d0}blockquote{margin:.1rem 0 .1rem;color:#333;white-space:pre-wrap}.flag{color:#a40000}\
.place{color:#555}:target{background:#fff4d6}";

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML has no control characters, and a terminal that the page is printed on obeys them.
            other if other.is_control() && !other.is_whitespace() => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            other => out.push(other),
        }
    }
    out
}

/// The page.
pub(crate) fn page(page: &Page<'_>) -> String {
    let summary = page.summary;
    let citations = Citations::of(summary.claims.iter().flat_map(|(_, claim)| &claim.evidence));
    let title = escaped(&summary.title);
    let state = match page.label {
        Label::Current => format!(
            "<p class=state>Current at event {}, for {}.</p>",
            summary.event,
            escaped(summary.principal.as_str())
        ),
        Label::History { event } => format!(
            "<p class=\"state history\">History: what was current at event {event}, built {}. Not the state of today.</p>",
            crate::moment::shown(summary.built_at)
        ),
    };
    let mut out = format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style>\n<h1>{title}</h1>\n{state}\n<ol>\n"
    );
    for (text, claim) in &summary.claims {
        let marks: String = claim
            .evidence
            .iter()
            .map(|id| {
                let n = citations.number(id);
                format!(" <a href=\"#e{n}\">[{n}]</a>")
            })
            .collect();
        let flag = match claim.support.verdict {
            Verdict::Supported => "",
            Verdict::Unsupported => " <span class=flag>not supported</span>",
            Verdict::Unchecked => " <span class=flag>not checked</span>",
        };
        let _ = writeln!(out, "<li dir=auto>{}{marks}{flag}</li>", escaped(text));
    }
    out.push_str("</ol>\n");
    for note in notes(summary) {
        let _ = writeln!(out, "<p>{}</p>", escaped(&note));
    }
    out.push_str("<h2>Cited passages</h2>\n");
    for (n, id, place, quote) in page.passages(&citations) {
        let _ = writeln!(
            out,
            "<div id=e{n}><span class=place>[{n}] {} v{}{}</span><blockquote dir=auto>{}</blockquote></div>",
            escaped(id.doc_id.as_str()),
            id.version,
            escaped(&place),
            escaped(quote)
        );
    }
    out.push_str("</html>");
    out
}
