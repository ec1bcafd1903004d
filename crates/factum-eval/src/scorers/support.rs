//! Support: the product's own check of a claim against the quotes that it cites.
//!
//! It is kept apart from the validity of citations: only beats that cite something that may be cited are asked.

use std::sync::OnceLock;

use factum_casefile::claim::Fields;
use factum_casefile::support::{Closeness, check_support, closeness};
use factum_casefile::{Profile, Support, Verdict};

use crate::fixture::Fixture;
use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::Scorecard;
use crate::summary::Summary;

/// A claim is a statement in prose here, whatever profile made it.
fn profile() -> Option<&'static Profile> {
    static PROFILE: OnceLock<Option<Profile>> = OnceLock::new();
    PROFILE
        .get_or_init(|| Profile::built_in("narrative").ok())
        .as_ref()
}

/// The product's verdict on a statement and the quotes it cites; none where there is no such check.
fn supports(statement: &str, quotes: &[&str]) -> Option<Support> {
    Some(check_support(profile()?, &fields(statement), quotes))
}

fn fields(statement: &str) -> Fields {
    [("statement".to_owned(), statement.to_owned())].into()
}

/// How close a statement is to its quotes; none where the check refuses it for anything else. One that is its quote is
/// as close as can be.
pub fn closeness_if_accepted(statement: &str, quotes: &[&str]) -> Option<Closeness> {
    let (profile, fields) = (profile()?, fields(statement));
    if quotes.contains(&statement) {
        return Some(Closeness::WHOLE);
    }
    closeness(profile, &fields, quotes)
}

pub(super) fn support(fixture: &Fixture, summary: &Summary, card: &mut Scorecard) {
    let beats = summary.beats.as_deref().unwrap_or_default();
    let (mut supported, mut asked) = (0, 0);
    for (beat, finding) in beats.iter().zip(&mut card.beats) {
        let quotes: Vec<String> = beat
            .evidence
            .iter()
            .filter_map(|id| fixture.source.resolve(id).ok())
            .map(|passage| passage.quote())
            .collect();
        if quotes.is_empty() {
            continue;
        }
        asked += 1;
        let quotes: Vec<&str> = quotes.iter().map(String::as_str).collect();
        match supports(&beat.text, &quotes) {
            Some(found) if found.verdict == Verdict::Supported => supported += 1,
            Some(found) => finding.unsupported = Some(found.detail),
            None => finding.unsupported = Some("the check could not be made".to_owned()),
        }
    }
    let share = Measured::share(supported, asked, "no beat cites what may be cited");
    card.measures.insert(ScoreName::Support, share);
}
