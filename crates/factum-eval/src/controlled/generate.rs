//! Makes the corpus from a seed: thirty case files of twelve documents in two versions, and their gold.
//!
//! Pure: the same seed makes the same bytes. [`write()`] alone touches files.

use std::path::Path;

use fastrand::Rng;

use super::corpus::{
    CORPUS_FORMAT, CaseFile, Corpus, CorpusError, Document, Group, Version, read_error,
};
use super::facts::Fact;
use super::gold::{GOLD_FORMAT, Gold, GoldCase, GoldDocument, GoldVersion};
use super::wording::{ARCHIVED, HOSTILE, MONTHS, PAST, SHAPES, SITES, STATUSES, Shape, UNITS};
use factum_base::{BodyDigest, canonical_json};

/// The first case file for testing and the first for development.
const TESTING: std::ops::RangeInclusive<u32> = 10..=29;
const ALL: std::ops::RangeInclusive<u32> = 10..=39;
/// Documents of a case file.
pub const DOCUMENTS: u32 = 12;
/// The seed of the corpus that figures are published for.
pub const DEFAULT_SEED: u64 = 2026;

/// A corpus in memory.
#[derive(Debug, Clone)]
pub struct Generated {
    /// What lies where.
    pub corpus: Corpus,
    /// Paths under the inputs' folder, with their texts.
    pub files: Vec<(String, String)>,
    /// What is true.
    pub gold: Gold,
}

/// Makes the corpus of a seed.
pub fn generate(seed: u64) -> Generated {
    let mut files = Vec::new();
    let mut cases = Vec::new();
    let mut gold = Vec::new();
    for case in ALL {
        let case_id = format!("S-{case:03}");
        let mut documents = Vec::new();
        let mut known = Vec::new();
        for number in 0..DOCUMENTS {
            // Each document has randomness of its own, so that one more draw in a document changes no other.
            let mut rng = Rng::with_seed(
                seed ^ (u64::from(case) << 32 | u64::from(number))
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15),
            );
            let written = document(&mut rng, case, number);
            let mut versions = Vec::new();
            for (version, text) in (1..).zip(written.texts) {
                let path = format!("{case_id}/v{version}/{}", written.doc_id);
                let sha256 = BodyDigest::of(text.as_bytes());
                versions.push(Version {
                    version,
                    path: path.clone(),
                    sha256,
                });
                files.push((path, text));
            }
            known.push(GoldDocument {
                doc_id: written.doc_id.clone(),
                versions: written.facts,
            });
            documents.push(Document {
                doc_id: written.doc_id,
                versions,
            });
        }
        let group = if TESTING.contains(&case) {
            Group::Test
        } else {
            Group::Development
        };
        gold.push(GoldCase {
            case_id: case_id.clone(),
            documents: known,
        });
        cases.push(CaseFile {
            case_id,
            group,
            documents,
        });
    }
    Generated {
        corpus: Corpus {
            format: CORPUS_FORMAT.to_owned(),
            seed,
            cases,
        },
        files,
        gold: Gold {
            format: GOLD_FORMAT.to_owned(),
            cases: gold,
        },
    }
}

struct Written {
    doc_id: String,
    texts: Vec<String>,
    facts: Vec<GoldVersion>,
}

fn document(rng: &mut Rng, case: u32, number: u32) -> Written {
    let shape = &SHAPES[rng.usize(..SHAPES.len())];
    let product = format!("P-{case:02}-{number:02}");
    let mut dates: Vec<String> = Vec::new();
    while dates.len() < 3 {
        let date = format!("{} {}", rng.u32(1..=28), pick(rng, &MONTHS));
        if !dates.contains(&date) {
            dates.push(date);
        }
    }
    let quantity = format!("{} {}", rng.u32(2..=96) * 10, pick(rng, &UNITS));
    let first = [
        Fact::new(&product, "delivery", &dates[1]),
        Fact::new(&product, "status", pick(rng, &STATUSES)),
        Fact::new(&product, "quantity", &quantity),
        Fact::new(&product, "site", pick(rng, &SITES)),
    ];
    let mut second = first.clone();
    second[0] = Fact::new(&product, "delivery", &dates[2]);
    let mut order: Vec<usize> = (0..first.len()).collect();
    rng.shuffle(&mut order);
    let paper = Paper {
        shape,
        product: &product,
        number: rng.u32(1_000..=9_999),
        order: &order,
        past: pick(rng, &PAST),
        archived: pick(rng, &ARCHIVED),
        hostile: pick(rng, &HOSTILE),
        past_first: rng.bool(),
    };
    let texts = vec![
        paper.text(&first, &dates[0]),
        paper.text(&second, &dates[1]),
    ];
    let facts = (1..)
        .zip([first, second])
        .map(|(version, facts)| GoldVersion {
            version,
            facts: facts.iter().map(Fact::fields).collect(),
        })
        .collect();
    Written {
        doc_id: format!("{number:02}-{}", shape.name),
        texts,
        facts,
    }
}

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

/// All of a document but its facts and its past date.
struct Paper<'a> {
    shape: &'a Shape,
    product: &'a str,
    number: u32,
    order: &'a [usize],
    past: &'a str,
    archived: &'a str,
    hostile: &'a str,
    past_first: bool,
}

impl Paper<'_> {
    fn text(&self, facts: &[Fact], past: &str) -> String {
        let past = self.past.replace("{d}", past);
        let quoted = format!("{}\"{}\"", self.archived, self.hostile);
        let (early, late) = if self.past_first {
            (past, quoted)
        } else {
            (quoted, past)
        };
        let mut lines: Vec<String> = self
            .shape
            .before
            .iter()
            .map(|&line| line.to_owned())
            .collect();
        let stated: Vec<String> = self.order.iter().map(|&n| facts[n].line()).collect();
        let (head, tail) = stated.split_at(2);
        lines.extend_from_slice(head);
        lines.push(self.shape.between[0].to_owned());
        lines.push(early);
        lines.extend_from_slice(tail);
        lines.push(self.shape.between[1].to_owned());
        lines.push(late);
        lines.extend(self.shape.after.iter().map(|&line| line.to_owned()));
        let text = lines.join("\n") + "\n";
        text.replace("{p}", self.product)
            .replace("{n}", &self.number.to_string())
    }
}

/// Writes a corpus: `DIR/inputs` and `DIR/gold`, which must not be there yet.
///
/// # Errors
/// A folder is there already, or can't be written.
pub fn write(folder: &Path, generated: &Generated) -> Result<(), CorpusError> {
    let inputs = folder.join("inputs");
    let gold = folder.join("gold");
    for taken in [&inputs, &gold] {
        if taken.exists() {
            return Err(CorpusError::Exists(taken.clone()));
        }
    }
    let write = |path: &Path, text: &str| -> Result<(), CorpusError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| read_error(parent, error))?;
        }
        std::fs::write(path, text).map_err(|error| read_error(path, error))
    };
    for (path, text) in &generated.files {
        write(&inputs.join(path), text)?;
    }
    write(&gold.join("gold.json"), &canonical_json(&generated.gold)?)?;
    // Last, so that a corpus that is not whole has no list of its files.
    write(
        &inputs.join("corpus.json"),
        &canonical_json(&generated.corpus)?,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::facts::fact_of_line;
    use super::*;

    // If this changes, figures published for the corpus are of another corpus.
    #[test]
    fn golden_corpus() {
        let made = generate(DEFAULT_SEED);
        let digest = made.corpus.digest().unwrap().to_hex();
        let gold = BodyDigest::of(canonical_json(&made.gold).unwrap().as_bytes()).to_hex();
        assert_eq!(
            [digest.as_str(), gold.as_str()],
            [
                "d21b018b385726a426d77828d95c49e1fffe4c69cc5c43ed9bfe42e9286fb1cb",
                "269afb17940c9a0664431acdf453bd6bf773cc5cd3c403a7af3889c4beb6f7fc"
            ]
        );
    }

    #[test]
    fn thirty_case_files_of_twelve_documents_in_two_versions() {
        let made = generate(DEFAULT_SEED);
        assert_eq!(made.corpus.cases.len(), 30);
        assert_eq!(made.files.len(), 720);
        let testing = made
            .corpus
            .cases
            .iter()
            .filter(|case| case.group == Group::Test);
        assert_eq!(testing.count(), 20);
        assert_eq!(made.corpus.cases[0].case_id, "S-010");
        assert_eq!(made.corpus.cases[29].case_id, "S-039");
        let shapes: BTreeSet<&str> = made
            .files
            .iter()
            .filter_map(|(path, _)| {
                path.rsplit_once('/')?
                    .1
                    .split_once('-')
                    .map(|(_, shape)| shape)
            })
            .collect();
        assert_eq!(shapes.len(), SHAPES.len());
    }

    #[test]
    fn the_grammar_finds_exactly_the_gold_in_every_text() {
        let made = generate(7);
        let texts: BTreeMap<&str, &str> = made
            .files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        for (case, gold) in made.corpus.cases.iter().zip(&made.gold.cases) {
            for (document, known) in case.documents.iter().zip(&gold.documents) {
                for (version, known) in document.versions.iter().zip(&known.versions) {
                    let text = texts[version.path.as_str()];
                    let found: BTreeSet<_> = text
                        .lines()
                        .filter_map(fact_of_line)
                        .map(|fact| fact.fields())
                        .collect();
                    assert_eq!(
                        found,
                        known.facts.iter().cloned().collect(),
                        "{}",
                        version.path
                    );
                    assert_eq!(found.len(), 4);
                    assert!(text.contains("no longer"), "{}", version.path);
                    assert_eq!(text.matches(": \"").count(), 1, "{}", version.path);
                }
                let [first, second] = &known.versions[..] else {
                    panic!()
                };
                let differing = first
                    .facts
                    .iter()
                    .zip(&second.facts)
                    .filter(|(a, b)| a != b)
                    .count();
                assert_eq!(differing, 1, "only the date changes");
            }
        }
    }

    #[test]
    fn another_seed_makes_another_corpus() {
        assert_ne!(
            generate(1).corpus.digest().unwrap(),
            generate(2).corpus.digest().unwrap()
        );
    }
}
