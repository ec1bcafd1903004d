//! Finding passages: by their words, and, where an embedder is given, by what they mean too.
//!
//! Rights are decided first, in the transaction that also ranks and cuts the passages. Vectors that are missing are
//! made at the time of the search, for passages that may be seen at that moment and no others, and the search begins
//! again when they are kept: so vectors can't lag behind events, and what is ranked is one state of the store.

use factum_base::{CaseId, PrincipalId};
use factum_casefile::Evidence;
use factum_casefile::terms::question_terms;
use factum_model::{Control, Embedder, ModelError};
use factum_store::{EmbedderDigest, Findable, PassageDigest, StoreError, Tx};

use crate::error::EngineError;
use crate::fusion::fuse;
use crate::permission::permitted;
use crate::retrieve::{Hit, SearchIn};
use crate::vectors::{Gathered, Whose, nearest};
use crate::workspace::Workspace;

/// So many passages of each ranking are fused, where not more are asked for.
const DEPTH: usize = 100;

/// How passages are found by what they mean.
pub struct ByMeaning<'a> {
    /// What makes vectors.
    pub embedder: &'a dyn Embedder,
    /// How it may be stopped. What was made is kept.
    pub control: &'a Control,
    /// Told how many passages have their vectors, and of how many, while vectors are made.
    pub watch: &'a (dyn Fn(u64, u64) + Sync),
    /// What decides the order.
    pub order: Order,
}

/// What decides the order of passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Words and vectors, fused by reciprocal rank.
    Fused,
    /// Vectors alone; to measure what they are worth.
    Vectors,
}

/// What a search by meaning came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundByMeaning {
    /// The passages, best first.
    pub hits: Vec<Hit>,
    /// Vectors that had to be made for it.
    pub made: u64,
}

/// A passage of one of the case files of a search. Of equals, the lesser comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Which case file.
    at: usize,
    /// The document and the passage's place in it; nothing hidden changes how two of these compare.
    within: Option<(i64, usize)>,
    /// The passage's number in the case file.
    number: u64,
}

/// A case file of a search, as it stands in one transaction.
struct Searched {
    case_id: CaseId,
    case_no: i64,
    findable: Findable,
}

impl Searched {
    /// A ranking of its passages, `at` its place among the case files.
    fn places(&self, at: usize, ranking: Vec<(u64, f32)>) -> impl Iterator<Item = (Place, f32)> {
        ranking.into_iter().map(move |(number, score)| {
            let within = self.findable.place(number);
            (Place { at, within, number }, score)
        })
    }
}

/// The question, as the two rankings know it.
struct Question<'a> {
    terms: Vec<String>,
    /// None where only words are looked at.
    meaning: Option<Meaning<'a>>,
    limit: usize,
}

struct Meaning<'a> {
    vector: &'a [f32],
    embedder: EmbedderDigest,
    order: Order,
}

/// Passages without vectors.
struct Missing {
    case_no: i64,
    passages: Vec<(PassageDigest, String)>,
    /// Passages of the search that have theirs, counted until these, and all of them.
    there: u64,
    all: u64,
}

enum Step {
    Found(Vec<Hit>),
    Missing(Missing),
}

impl Workspace {
    /// The best passages for a question over case files, best first, by their words.
    ///
    /// # Errors
    /// A case file is unknown or hidden, or the store is damaged.
    pub async fn search(
        &self,
        principal: &PrincipalId,
        cases: &[SearchIn],
        question: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, EngineError> {
        let question = Question {
            terms: question_terms(question),
            meaning: None,
            limit,
        };
        match self.step(principal, cases, &question).await? {
            Step::Found(hits) => Ok(hits),
            Step::Missing(_) => Ok(Vec::new()),
        }
    }

    /// The best passages for a question by words and by meaning. The first search of a case file makes the vectors of
    /// all passages that the principal may see; later ones make those of new passages.
    ///
    /// # Errors
    /// A case file is unknown or hidden, the store is damaged, the embedder fails, or it is stopped.
    pub async fn search_by_meaning(
        &self,
        principal: &PrincipalId,
        cases: &[SearchIn],
        question: &str,
        limit: usize,
        by: &ByMeaning<'_>,
    ) -> Result<FoundByMeaning, EngineError> {
        let mut out = FoundByMeaning::default();
        if question.trim().is_empty() {
            return Ok(out);
        }
        // Before anything is computed for someone who may see nothing.
        let asked: Vec<CaseId> = cases.iter().map(|one| one.case.clone()).collect();
        self.check_may_see(principal, &asked).await?;
        let identity = by.embedder.identity().canonical()?;
        let vectors = embed(by, &[question.to_owned()]).await?;
        self.vectors.trim();
        let question = Question {
            terms: question_terms(question),
            meaning: vectors.first().map(|vector| Meaning {
                vector,
                embedder: EmbedderDigest::of(identity.as_bytes()),
                order: by.order,
            }),
            limit,
        };
        loop {
            let missing = match self.step(principal, cases, &question).await? {
                Step::Found(hits) => {
                    out.hits = hits;
                    return Ok(out);
                }
                Step::Missing(missing) => missing,
            };
            (by.watch)(missing.there, missing.all);
            let (digests, texts): (Vec<_>, Vec<_>) = missing.passages.into_iter().unzip();
            let made = embed(by, &texts).await?;
            out.made += made.len() as u64;
            let kept: Vec<_> = digests.into_iter().zip(made).collect();
            let mut tx = self.repository.write().await?;
            tx.put_vectors(missing.case_no, &identity, &kept).await?;
            tx.commit().await?;
        }
    }

    /// One look at the store: what was found, or which vectors are missing.
    async fn step(
        &self,
        principal: &PrincipalId,
        cases: &[SearchIn],
        question: &Question<'_>,
    ) -> Result<Step, EngineError> {
        let mut tx = self.repository.read().await?;
        let outcome = self.step_in(&mut tx, principal, cases, question).await;
        tx.close().await?;
        outcome
    }

    async fn step_in(
        &self,
        tx: &mut Tx,
        principal: &PrincipalId,
        cases: &[SearchIn],
        question: &Question<'_>,
    ) -> Result<Step, EngineError> {
        let mut searched = Vec::with_capacity(cases.len());
        for one in cases {
            let permitted = permitted(tx, &one.case, principal).await?;
            let access = permitted.access.case;
            let findable = tx
                .findable(&permitted.case, principal.as_str(), access, &one.documents)
                .await?;
            searched.push(Searched {
                case_id: one.case.clone(),
                case_no: permitted.case.case_no,
                findable,
            });
        }
        let Some(meaning) = &question.meaning else {
            let best = by_words(tx, &searched, &question.terms, question.limit).await?;
            return self.cut_all(tx, &searched, best, question.limit).await;
        };
        let depth = question.limit.max(DEPTH);
        let near = match self.by_vectors(tx, &searched, meaning, depth).await? {
            Ok(near) => near,
            Err(missing) => return Ok(Step::Missing(missing)),
        };
        let best = match meaning.order {
            Order::Vectors => near,
            Order::Fused => {
                let words = by_words(tx, &searched, &question.terms, depth).await?;
                let places = |ranking: &[(Place, f32)]| ranking.iter().map(|one| one.0).collect();
                let fused = fuse(&[places(&words), places(&near)]);
                #[expect(clippy::cast_possible_truncation, reason = "a score to show")]
                let narrow = |(place, score): (Place, f64)| (place, score as f32);
                fused.into_iter().map(narrow).collect()
            }
        };
        self.cut_all(tx, &searched, best, question.limit).await
    }

    /// The passages nearest to the question, or which have no vectors yet.
    async fn by_vectors(
        &self,
        tx: &mut Tx,
        searched: &[Searched],
        meaning: &Meaning<'_>,
        limit: usize,
    ) -> Result<Result<Vec<(Place, f32)>, Missing>, EngineError> {
        let all = searched.iter().map(|one| one.findable.passages()).sum();
        let mut there = 0;
        let mut out = Vec::new();
        for (at, one) in searched.iter().enumerate() {
            let whose = Whose {
                case_no: one.case_no,
                embedder: meaning.embedder,
                dimensions: meaning.vector.len(),
            };
            let gathered = self
                .vectors
                .gather(tx, &self.texts, &whose, &one.findable)
                .await?;
            match gathered {
                Gathered::All(vectors) => {
                    there += one.findable.passages();
                    let near = nearest(meaning.vector, &vectors, limit);
                    out.extend(one.places(at, near));
                }
                Gathered::Missing { passages, before } => {
                    return Ok(Err(Missing {
                        case_no: one.case_no,
                        passages,
                        there: there + before,
                        all,
                    }));
                }
            }
        }
        best_first(&mut out, limit);
        Ok(Ok(out))
    }

    /// The passages themselves, cut from the texts of this transaction.
    async fn cut_all(
        &self,
        tx: &mut Tx,
        searched: &[Searched],
        mut best: Vec<(Place, f32)>,
        limit: usize,
    ) -> Result<Step, EngineError> {
        best.truncate(limit);
        let mut found = Vec::with_capacity(best.len());
        for (Place { at, number, .. }, score) in best {
            let one = &searched[at];
            found.push((at, tx.passage(&one.findable, number, score).await?));
        }
        let digests = found.iter().map(|(_, passage)| passage.text_sha256);
        let texts = self.texts.texts(tx, digests).await?;
        let mut hits = Vec::with_capacity(found.len());
        for (at, passage) in found {
            let text = &texts[&passage.text_sha256];
            let quote = text
                .index
                .slice(&text.text, passage.span)
                .map_err(|error| StoreError::Damaged(format!("the search index: {error}")))?;
            hits.push(Hit {
                case: searched[at].case_id.clone(),
                evidence: Evidence::cite(
                    &passage.doc_id,
                    passage.version,
                    passage.text_sha256,
                    passage.span,
                    quote,
                ),
                score: passage.score,
            });
        }
        Ok(Step::Found(hits))
    }
}

async fn by_words(
    tx: &mut Tx,
    searched: &[Searched],
    terms: &[String],
    limit: usize,
) -> Result<Vec<(Place, f32)>, EngineError> {
    let mut out = Vec::new();
    for (at, one) in searched.iter().enumerate() {
        let best = tx.best_by_words(&one.findable, terms, limit).await?;
        out.extend(one.places(at, best));
    }
    best_first(&mut out, limit);
    Ok(out)
}

/// The order over several case files: by score, and of equal ones as they were named.
fn best_first(ranking: &mut Vec<(Place, f32)>, limit: usize) {
    ranking.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranking.truncate(limit);
}

/// Vectors of texts, held to what every vector must be.
async fn embed(by: &ByMeaning<'_>, texts: &[String]) -> Result<Vec<Vec<f32>>, EngineError> {
    let made = by.embedder.embed(texts, by.control).await;
    let made = made.map_err(|error| match error {
        ModelError::Cancelled => EngineError::Interrupted,
        other => EngineError::Model(other),
    })?;
    let dimensions = by.embedder.dimensions();
    let sound = |vector: &Vec<f32>| {
        vector.len() == dimensions && vector.iter().all(|number| number.is_finite())
    };
    if made.len() != texts.len() || !made.iter().all(sound) {
        let message = "the embedder did not give one vector for each text".to_owned();
        return Err(EngineError::Model(ModelError::Engine(message)));
    }
    Ok(made)
}
