//! A summary as it is scored: its text, and its beats where it says what each part rests on.
//!
//! This is what every provider hands over, as JSON: `{"text": "...", "beats": [{"text": "...", "evidence": ["id"],
//! "speaker": "...", "t_start": 0, "t_end": 9}]}`. Without `text`, the beats are the text. What
//! `factum show --json` prints is read too, each claim as a beat.

use serde::{Deserialize, Serialize};

use crate::located::{Node, Value, read_json, text_of};
use crate::reading::{Finding, Findings};

/// A summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Summary {
    /// The whole text.
    pub text: String,
    /// Its units; none where the summary is not made of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beats: Option<Vec<Beat>>,
}

/// A unit of a summary with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Beat {
    /// What it says.
    pub text: String,
    /// Ids of lines or passages of the source.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Who is said to have spoken all of the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// From when, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_start: Option<f64>,
    /// Until when, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_end: Option<f64>,
}

impl Summary {
    /// A summary of beats alone.
    pub fn of_beats(beats: Vec<Beat>) -> Self {
        let texts: Vec<&str> = beats.iter().map(|beat| beat.text.as_str()).collect();
        Self {
            // An empty line between beats, so that no sentence runs from one into the next.
            text: texts.join("\n\n"),
            beats: Some(beats),
        }
    }

    /// Reads a provider's output.
    ///
    /// # Errors
    /// It is no JSON of this form; the first findings say why.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let node = text_of(bytes).and_then(read_json).map_err(|error| {
            vec![Finding {
                line: error.line,
                path: String::new(),
                message: error.message,
            }]
        })?;
        let mut findings = Findings::default();
        let summary = read_summary(&mut findings, &node, "");
        match summary {
            Some(summary) if findings.is_empty() => Ok(summary),
            _ => Err(findings.into_vec()),
        }
    }
}

/// The keys of a summary.
pub(crate) const SUMMARY_KEYS: &[&str] = &["text", "beats"];
/// The keys of a beat.
pub(crate) const BEAT_KEYS: &[&str] = &["text", "evidence", "speaker", "t_start", "t_end"];

pub(crate) fn read_summary(findings: &mut Findings, node: &Node, path: &str) -> Option<Summary> {
    if is_served(node) {
        return read_served(findings, node, path);
    }
    let fields = findings.map(node, path, SUMMARY_KEYS)?;
    let text = fields.optional(findings, "text", Findings::text);
    let beats = fields.optional(findings, "beats", |findings, node, path| {
        findings.each(node, path, read_beat)
    });
    match (text, beats) {
        (Some(text), beats) => Some(Summary { text, beats }),
        (None, Some(beats)) => Some(Summary::of_beats(beats)),
        (None, None) => {
            if fields.get("text").is_none() && fields.get("beats").is_none() {
                findings.add(node.line, path, "a summary needs \"text\" or \"beats\"");
            }
            None
        }
    }
}

fn read_beat(findings: &mut Findings, node: &Node, path: &str) -> Option<Beat> {
    let fields = findings.map(node, path, BEAT_KEYS)?;
    let beat = Beat {
        text: fields.required(findings, "text", Findings::text)?,
        evidence: fields
            .optional(findings, "evidence", Findings::texts)
            .unwrap_or_default(),
        speaker: fields.optional(findings, "speaker", Findings::filled),
        t_start: fields.optional(findings, "t_start", read_time),
        t_end: fields.optional(findings, "t_end", read_time),
    };
    if let (Some(start), Some(end)) = (beat.t_start, beat.t_end)
        && end < start
    {
        findings.add(node.line, path, "t_end lies before t_start");
    }
    Some(beat)
}

/// Seconds, or `[H:]MM:SS[.fff]`.
pub(crate) fn read_time(findings: &mut Findings, node: &Node, path: &str) -> Option<f64> {
    let seconds = match &node.value {
        Value::Number(seconds) => Some(*seconds),
        Value::Text(text) => clock_time(text),
        _ => None,
    };
    if seconds.is_none_or(|seconds| seconds < 0.0) {
        findings.add(
            node.line,
            path,
            "expected seconds, as a number or as \"H:MM:SS\"",
        );
        return None;
    }
    seconds
}

fn clock_time(text: &str) -> Option<f64> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let mut seconds = 0.0;
    for (place, part) in parts.iter().enumerate() {
        let last = place + 1 == parts.len();
        let plain = !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_digit() || (last && c == '.'));
        let value = part.parse::<f64>().ok().filter(|_| plain)?;
        if place > 0 && value >= 60.0 {
            return None;
        }
        seconds = seconds * 60.0 + value;
    }
    Some(seconds)
}

fn is_served(node: &Node) -> bool {
    let Value::Map(fields) = &node.value else {
        return false;
    };
    fields.iter().any(|field| {
        field.key == "format" && field.value.value == Value::Text("factum/summary/1".to_owned())
    })
}

/// `factum show --json`: whatever else it holds is not needed here.
fn read_served(findings: &mut Findings, node: &Node, path: &str) -> Option<Summary> {
    let Value::Map(fields) = &node.value else {
        return None;
    };
    let find = |key: &str| fields.iter().find(|field| field.key == key);
    let Some(claims) = find("claims") else {
        let message = "a refused summary has no claims to score";
        findings.add(node.line, path, message);
        return None;
    };
    let beats = findings.each(&claims.value, "claims", |findings, node, path| {
        let Value::Map(fields) = &node.value else {
            findings.add(node.line, path, "a claim must be an object");
            return None;
        };
        let find = |key: &str| fields.iter().find(|field| field.key == key);
        let text = findings.text(&find("text")?.value, path)?;
        let evidence = match find("evidence") {
            Some(field) => findings.texts(&field.value, path)?,
            None => Vec::new(),
        };
        Some(Beat {
            text,
            evidence,
            ..Beat::default()
        })
    })?;
    Some(Summary::of_beats(beats))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_or_rubbish_is_an_error_with_its_line() {
        for (text, line) in [
            ("{\"text\":\n\"\\ud83d\"}", 2),
            ("hello", 1),
            ("", 1),
            ("{\"text\": 3}", 1),
            ("{\"txt\": \"a\"}", 1),
            (
                "{\"beats\": [{\"text\": \"a\",\n \"evidence\": \"l1\"}]}",
                2,
            ),
            ("{}", 1),
            ("{\"beats\":[{\"text\":\"a\",\"t_start\":NaN}]}", 1),
        ] {
            let error = Summary::from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error[0].line, line, "{text}");
        }
        assert!(Summary::from_json(b"\xff\xfe").is_err());
    }

    #[test]
    fn beats_alone_are_the_text_and_times_may_be_written_out() {
        let json = br#"{"beats": [{"text": "One.", "t_start": "1:02:03.5", "t_end": "90:00"}, {"text": "Two."}]}"#;
        let error = Summary::from_json(json);
        assert!(error.is_ok(), "{error:?}");
        let summary = error.unwrap();
        assert_eq!(summary.text, "One.\n\nTwo.");
        let beats = summary.beats.unwrap();
        assert_eq!(beats[0].t_start, Some(3723.5));
        assert_eq!(beats[0].t_end, Some(5400.0));
    }

    #[test]
    fn what_factum_shows_is_read_as_beats() {
        let json = br#"{"format": "factum/summary/1", "case_id": "c", "claims": [{"text": "A.", "fields": {}, "evidence": ["a.txt@1:0:2"]}]}"#;
        let summary = Summary::from_json(json).unwrap();
        assert_eq!(summary.beats.unwrap()[0].evidence, ["a.txt@1:0:2"]);
        let refused = br#"{"format": "factum/summary/1", "status": "STALE"}"#;
        assert!(Summary::from_json(refused).is_err());
    }
}
