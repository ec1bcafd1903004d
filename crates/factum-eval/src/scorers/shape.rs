//! What a summary looks like from outside: whether there is one, how long it is, how often it repeats itself.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::measured::Measured;
use crate::score_name::ScoreName;
use crate::scorers::Scorecard;
use crate::scorers::sentences::Sentences;
use crate::summary::Summary;

pub(super) fn shape(summary: &Summary, sentences: &Sentences, card: &mut Scorecard) {
    let answered = summary.text.chars().any(char::is_alphanumeric);
    let answer = Measured::share(usize::from(answered), 1, "");
    card.measures.insert(ScoreName::AnswerRate, answer);
    let points = summary.text.chars().count();
    #[expect(clippy::cast_precision_loss, reason = "a summary is far below 2^52")]
    let length = Measured::Score {
        value: points as f64,
        hits: i64::try_from(points).unwrap_or(i64::MAX),
        of: 1,
    };
    card.measures.insert(ScoreName::Length, length);
    let mut seen = HashSet::new();
    let mut repeated = 0;
    for sentence in sentences.all() {
        let text = summary.text.get(sentence.clone()).unwrap_or_default();
        let words: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
        repeated += usize::from(!seen.insert(words));
    }
    let duplication = Measured::share(repeated, sentences.all().len(), "no sentences");
    card.measures.insert(ScoreName::Duplication, duplication);
}
