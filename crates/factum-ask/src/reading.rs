//! A conversation read again: each answer as it stands now. One that rests on what has changed is marked; one made
//! from what may no longer be shown is not shown.

use std::collections::{BTreeMap, BTreeSet};

use factum_engine::retrieve::Standing;
use serde::Serialize;

use crate::access::why;
use crate::answer::{Answer, Cited, Counts, Searched, read_answer};
use crate::conversation::{Answered, Conversation};
use crate::error::AskError;
use crate::ledger::Status;
use crate::message::{Message, Ref, Source, WhyIgnored};

/// How an earlier answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStanding {
    /// What it rests on is as it was.
    Current,
    /// Something that it rests on has a newer version.
    Outdated,
    /// Something that it was made from was withdrawn or is hidden from the reader.
    Withheld,
}

/// One question with its answer, as it stands now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exchange {
    /// How it stands.
    pub standing: AnswerStanding,
    /// When it was answered, in Unix milliseconds.
    pub answered_at: i64,
    /// The answer; without its words where they are withheld.
    #[serde(flatten)]
    pub answer: Answer,
}

impl Conversation {
    /// All questions that were answered.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn exchanges(&self) -> Result<Vec<Exchange>, AskError> {
        self.exchanges_of(&self.kept.answers).await
    }

    /// The answer as it stands at this moment; none where it may not be shown.
    pub(crate) async fn showable(&self, one: &Answered) -> Result<Option<Answer>, AskError> {
        let exchanges = self.exchanges_of(std::slice::from_ref(one)).await?;
        let shown = |one: &Exchange| one.standing != AnswerStanding::Withheld;
        Ok(exchanges.into_iter().find(shown).map(|one| one.answer))
    }

    async fn exchanges_of(&self, answers: &[Answered]) -> Result<Vec<Exchange>, AskError> {
        let refs: BTreeSet<Ref> = answers
            .iter()
            .flat_map(|one| one.declared.iter().flatten().cloned())
            .collect();
        let sources: BTreeSet<Source> = answers
            .iter()
            .flat_map(|one| {
                let found = one.searches.iter().flat_map(found_in);
                self.made_from(one).into_iter().chain(found)
            })
            .collect();
        let standing = self.access().standing(&refs, &sources).await?;
        Ok(answers
            .iter()
            .map(|one| self.exchange(one, &standing))
            .collect())
    }

    /// Versions whose words may be in an answer: those that it cites, and those that were before the model.
    fn made_from(&self, one: &Answered) -> BTreeSet<Source> {
        let mut out: BTreeSet<Source> = one.declared.iter().flatten().map(Ref::source).collect();
        if let Some(Message::Response(response)) = self.message(one) {
            out.extend(response.sources.iter().cloned());
        }
        out
    }

    fn message(&self, one: &Answered) -> Option<&Message> {
        let at = usize::try_from(one.message?).ok()?;
        self.history.messages().get(at)
    }

    fn exchange(&self, one: &Answered, standing: &Standing) -> Exchange {
        let versions: BTreeMap<(&str, &str, u32), bool> = standing
            .current
            .iter()
            .map(|version| (version, true))
            .chain(standing.replaced.iter().map(|version| (version, false)))
            .map(|((case, doc_id, version), current)| {
                ((case.as_str(), doc_id.as_str(), *version), current)
            })
            .collect();
        let state = |source: &Source| {
            let key = (
                source.capability.as_str(),
                source.doc_id.as_str(),
                source.version,
            );
            versions.get(&key).copied()
        };
        let cited: BTreeSet<Source> = one.declared.iter().flatten().map(Ref::source).collect();
        let how = if self
            .made_from(one)
            .iter()
            .any(|source| state(source).is_none())
        {
            AnswerStanding::Withheld
        } else if cited.iter().any(|source| state(source) == Some(false)) {
            AnswerStanding::Outdated
        } else {
            AnswerStanding::Current
        };
        let mut answer = self.shown(one, standing);
        if how == AnswerStanding::Withheld {
            answer.text = String::new();
            answer.sentences = Vec::new();
            // What was looked for may be words of it, too.
            answer.searches = Vec::new();
            answer
                .refs
                .retain(|one| matches!(one.fault, None | Some(WhyIgnored::Stale)));
            for cited in &mut answer.refs {
                cited.quote = None;
            }
        }
        // What is hidden is not even named.
        for search in &mut answer.searches {
            let case = search.case_id.clone();
            search
                .found
                .retain(|id| state(&Ref::new(case.clone(), id.clone()).source()).is_some());
        }
        answer.retrieved = retrieved(&answer.searches);
        Exchange {
            standing: how,
            answered_at: one.at,
            answer,
        }
    }

    /// An answer as it is shown, given how its evidence stands.
    pub(crate) fn shown(&self, one: &Answered, standing: &Standing) -> Answer {
        let empty = Vec::new();
        let declared = one.declared.as_ref().unwrap_or(&empty);
        let raw = match self.message(one) {
            Some(Message::Response(response)) => response.text.as_str(),
            _ => "",
        };
        let (text, sentences) = read_answer(raw, declared, &self.kept.ledger);
        Answer {
            conversation_id: self.id().to_owned(),
            question_id: one.question,
            question: self.question_text(one.question).to_owned(),
            text,
            sentences,
            refs: declared
                .iter()
                .filter_map(|one| self.cited(one, standing))
                .collect(),
            status: match &one.declared {
                None => Status::Missing,
                Some(refs) if refs.is_empty() => Status::Ungrounded,
                Some(_) => Status::Grounded,
            },
            violations: self.violations(),
            retrieved: retrieved(&one.searches),
            searches: one.searches.clone(),
            counts: Counts { ..one.counts },
            seconds: one.seconds,
            generator: one.generator.clone(),
            embeddings: one.embeddings.clone(),
        }
    }

    fn cited(&self, one: &Ref, standing: &Standing) -> Option<Cited> {
        let citation = self.kept.ledger.citation(one)?;
        let key = standing
            .evidence
            .iter()
            .find(|((case, id), _)| case.as_str() == one.capability && *id == one.evidence);
        let fault = match key {
            Some((_, Ok(_))) => None,
            Some((_, Err(fault))) => Some(why(fault)),
            None => Some(WhyIgnored::Unknown),
        };
        // The text as cited stays readable to those who may still see its document.
        let readable = matches!(fault, None | Some(WhyIgnored::Stale));
        Some(Cited {
            display: citation.display,
            case_id: one.capability.clone(),
            evidence_id: one.evidence.clone(),
            doc_id: citation.doc_id.to_string(),
            version: citation.version,
            title: citation.title.clone(),
            place: citation.place.clone(),
            quote: readable.then(|| citation.quote.clone()),
            fault,
        })
    }
}

fn found_in(search: &Searched) -> impl Iterator<Item = Source> + '_ {
    let sources = search.found.iter().cloned();
    sources.map(|id| Ref::new(search.case_id.clone(), id).source())
}

fn retrieved(searches: &[Searched]) -> Vec<factum_casefile::EvidenceId> {
    let mut out = Vec::new();
    for id in searches.iter().flat_map(|one| &one.found) {
        if !out.contains(id) {
            out.push(id.clone());
        }
    }
    out
}
