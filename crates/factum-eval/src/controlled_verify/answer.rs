//! The strict reading of a model's answer, from the definition: exactly the claims, or nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::facts::Fields;
use super::json::{self, field, number, texts};

/// What an answer comes to.
pub(super) struct Reading {
    /// The corrections that were made, by name.
    pub(super) repairs: Vec<&'static str>,
    /// Each claim with the places of what it cites. `None` where the answer breaks a rule.
    pub(super) claims: Option<Vec<(Fields, Vec<usize>)>>,
}

/// What an answer is held to.
pub(super) struct Rules<'r> {
    /// The schema of claims, as the node's spec has it.
    pub(super) schema: &'r Value,
    /// What the node was shown, `e1` first.
    pub(super) quotes: &'r [&'r str],
    /// Decoding was held to the passages, so values that must come from one are held to it.
    pub(super) grounded: bool,
}

/// Reads an answer.
pub(super) fn read(answer: &str, stop: &str, rules: &Rules<'_>) -> Reading {
    let mut repairs = Vec::new();
    // What stopped for length is no answer, even where a prefix of it reads well.
    if stop != "end" {
        return Reading {
            repairs,
            claims: None,
        };
    }
    let mut body = answer.trim();
    if body != answer {
        repairs.push("outer-white-space");
    }
    if let Some(inside) = without_fence(body) {
        repairs.push("json-fence");
        body = inside;
    }
    let value = json::parse(body.as_bytes()).ok();
    let claims = value.and_then(|value| read_claims(&value, rules));
    Reading { repairs, claims }
}

/// What stands in one complete fence for JSON.
fn without_fence(body: &str) -> Option<&str> {
    let (first, rest) = body.split_once('\n')?;
    let inside = rest.strip_suffix("```")?;
    let opens = first.strip_suffix('\r').unwrap_or(first) == "```json";
    (opens && !inside.contains("```")).then(|| inside.trim())
}

fn read_claims(value: &Value, rules: &Rules<'_>) -> Option<Vec<(Fields, Vec<usize>)>> {
    let answer = value.as_object()?;
    let claims = answer.get("claims")?.as_array()?;
    let most = number(rules.schema, "max_claims");
    if answer.len() != 1 || claims.len() as u64 > most {
        return None;
    }
    claims
        .iter()
        .map(|claim| read_claim(claim, rules))
        .collect()
}

fn read_claim(claim: &Value, rules: &Rules<'_>) -> Option<(Fields, Vec<usize>)> {
    let known = field(rules.schema, "fields").as_object()?;
    let mut fields = Fields::new();
    for (name, value) in claim.as_object()? {
        if name == "evidence" {
            continue;
        }
        let rule = known.get(name)?;
        let value = value.as_str()?;
        let choices = texts(rule, "one_of");
        let long = value.chars().count() as u64;
        let fits = (1..=number(rule, "max_chars")).contains(&long);
        if !fits || !(choices.is_empty() || choices.contains(&value)) {
            return None;
        }
        fields.insert(name.clone(), value.to_owned());
    }
    for (name, rule) in known {
        if field(rule, "optional") != &Value::Bool(true) && !fields.contains_key(name) {
            return None;
        }
    }
    let cited = read_citations(field(claim, "evidence"), rules)?;
    let first = rules.quotes.get(*cited.first()?)?;
    let strays = fields.iter().any(|(name, value)| {
        let bound = known
            .get(name)
            .is_some_and(|rule| field(rule, "from_quote") == &Value::Bool(true));
        bound && !first.contains(value.as_str())
    });
    (!(rules.grounded && strays)).then_some((fields, cited))
}

fn read_citations(cited: &Value, rules: &Rules<'_>) -> Option<Vec<usize>> {
    let cited = cited.as_array()?;
    let most = number(rules.schema, "max_evidence");
    if cited.is_empty() || cited.len() as u64 > most {
        return None;
    }
    let mut places = Vec::with_capacity(cited.len());
    for id in cited {
        let id = id.as_str()?;
        // An id is what the prompt shows, character for character.
        let place = (0..rules.quotes.len()).find(|n| format!("e{}", n + 1) == id)?;
        places.push(place);
    }
    let distinct: BTreeSet<usize> = places.iter().copied().collect();
    (distinct.len() == places.len()).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reads(answer: &str, stop: &str) -> Option<usize> {
        let schema = json!({
            "fields": {
                "field": {"max_chars": 40, "one_of": ["delivery", "status"], "optional": false},
                "subject": {"max_chars": 120, "optional": false},
                "value": {"max_chars": 120, "optional": false},
            },
            "max_claims": 4,
            "max_evidence": 4,
        });
        let quotes = ["one", "two"];
        let rules = Rules {
            schema: &schema,
            quotes: &quotes,
            grounded: false,
        };
        read(answer, stop, &rules).claims.map(|claims| claims.len())
    }

    #[test]
    fn only_the_exact_form_is_an_answer() {
        let claim =
            "{\"evidence\":[\"e1\"],\"field\":\"delivery\",\"subject\":\"P\",\"value\":\"1 May\"}";
        let whole = |claims: &str| format!("{{\"claims\":[{claims}]}}");
        assert_eq!(reads(&whole(claim), "end"), Some(1));
        assert_eq!(reads(&whole(""), "end"), Some(0));
        assert_eq!(
            reads(&format!(" ```json\n{}\n``` ", whole(claim)), "end"),
            Some(1)
        );
        assert_eq!(reads(&whole(claim), "length"), None);
        let long = "x".repeat(121);
        for (from, to) in [
            ("\"e1\"", "\"e3\""),
            ("\"e1\"", "\"e01\""),
            ("\"e1\"", "\"e1\",\"e1\""),
            ("\"e1\"", ""),
            ("\"e1\"", "1"),
            ("delivery", "colour"),
            ("1 May", long.as_str()),
            ("\"1 May\"", "\"\""),
            ("\"1 May\"", "NaN"),
            (",\"value\":\"1 May\"", ""),
            (
                "\"value\":\"1 May\"",
                "\"value\":\"1 May\",\"value\":\"1 May\"",
            ),
            ("\"value\":\"1 May\"", "\"value\":\"1 May\",\"why\":\"x\""),
        ] {
            assert_eq!(reads(&whole(&claim.replace(from, to)), "end"), None, "{to}");
        }
        assert_eq!(reads(&whole(&[claim; 5].join(",")), "end"), None);
        assert_eq!(reads(&format!("{} x", whole(claim)), "end"), None);
        assert_eq!(reads(&format!("```\n{}\n```", whole(claim)), "end"), None);
        assert_eq!(reads("", "end"), None);
    }
}
