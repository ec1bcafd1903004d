//! Search over 100,000 passages of a made-up case file, whose words are as unevenly spread as those of a language.
//! Prints the time that half, and one in a hundred, of 500 different questions take longer than; then what reading and
//! ranking vectors takes, with an embedder that costs nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_engine::publish::ReadFile;
use factum_engine::retrieve::SearchIn;
use factum_engine::searching::{ByMeaning, Order};
use factum_engine::{OWNER, Workspace};
use factum_ingest::Limits;
use factum_model::generator::BoxFuture;
use factum_model::{Control, Embedder, ModelError, ModelIdentity};
use serde_json::json;
use tokio::runtime::Runtime;

const DOCUMENTS: u64 = 5_000;
const PASSAGES: usize = 20;
const WORDS: f64 = 30_000.0;

/// SplitMix64: the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    // Zipf's law with exponent one: the rank is spread evenly on a logarithmic scale.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank within 30,000"
    )]
    fn word(&mut self) -> String {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = WORDS.powf(share) as u64;
        format!("w{rank}x")
    }

    fn passage(&mut self) -> String {
        let words: Vec<String> = (0..32).map(|_| self.word()).collect();
        format!("{}.", words.join(" "))
    }
}

fn file(n: u64) -> (DocumentId, ReadFile) {
    let mut numbers = Numbers(n);
    let text: Vec<String> = (0..PASSAGES).map(|_| numbers.passage()).collect();
    let name = format!("{n:05}.txt");
    let text = text.join("\n\n").into_bytes();
    let read = ReadFile::read(Path::new(&name), text, &Limits::default()).expect("a text");
    (DocumentId::new(name).expect("an id"), read)
}

/// Numbers out of a text that look random and are always the same, as long as a small sentence model's.
#[derive(Debug)]
struct Hashes(ModelIdentity);

impl Hashes {
    const DIMENSIONS: usize = 384;

    fn new() -> Self {
        Self(ModelIdentity::new(json!({"kind": "hashes"})))
    }

    #[expect(clippy::cast_precision_loss, reason = "any numbers will do")]
    fn vector(text: &str) -> Vec<f32> {
        let seed = text.bytes().fold(0u64, |sum, byte| {
            sum.wrapping_mul(0x100_0000_01b3)
                .wrapping_add(u64::from(byte))
        });
        let mut numbers = Numbers(seed);
        let raw: Vec<f32> = (0..Self::DIMENSIONS)
            .map(|_| (numbers.next() >> 40) as f32 / 8_388_608.0 - 1.0)
            .collect();
        let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
        raw.into_iter().map(|x| x / length).collect()
    }
}

impl Embedder for Hashes {
    fn identity(&self) -> &ModelIdentity {
        &self.0
    }

    fn dimensions(&self) -> usize {
        Self::DIMENSIONS
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        _: &'a Control,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        let made = texts.iter().map(|text| Self::vector(text)).collect();
        Box::pin(std::future::ready(Ok(made)))
    }
}

async fn by_meaning(workspace: &Workspace, owner: &PrincipalId, cases: &[SearchIn]) -> Duration {
    let control = Control::default();
    let by = ByMeaning {
        embedder: &Hashes::new(),
        control: &control,
        watch: &|_, _| {},
        order: Order::Fused,
    };
    let started = Instant::now();
    workspace
        .search_by_meaning(owner, cases, "w1x w20x w300x w4000x", 20, &by)
        .await
        .expect("searched");
    started.elapsed()
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let owner = PrincipalId::new(OWNER).expect("an id");
    let case = CaseId::new("case").expect("an id");
    runtime.block_on(async {
        let workspace = Workspace::init(folder.path(), Arc::new(|| 0))
            .await
            .expect("a workspace");
        workspace
            .new_case(&owner, &case, None, "narrative")
            .await
            .expect("a case file");
        let started = Instant::now();
        for batch in 0..DOCUMENTS / 500 {
            let files: Vec<_> = (batch * 500..(batch + 1) * 500).map(file).collect();
            workspace
                .add(&owner, &case, &files, None)
                .await
                .expect("published");
        }
        println!(
            "{DOCUMENTS} documents published in {:.1} s",
            started.elapsed().as_secs_f64()
        );
        let cases = [SearchIn {
            case: case.clone(),
            documents: BTreeSet::new(),
        }];
        let mut numbers = Numbers(77);
        let mut questions: Vec<(&str, Vec<String>)> = vec![
            ("one word", (0..500).map(|_| numbers.word()).collect()),
            (
                "eight words",
                (0..500)
                    .map(|_| {
                        numbers
                            .passage()
                            .split(' ')
                            .take(8)
                            .collect::<Vec<_>>()
                            .join(" ")
                    })
                    .collect(),
            ),
            (
                "the eight most frequent words",
                vec!["w1x w2x w3x w4x w5x w6x w7x w8x".to_owned(); 100],
            ),
        ];
        for (what, questions) in &mut questions {
            let mut times = Vec::new();
            let mut found = 0;
            for question in questions.iter() {
                let started = Instant::now();
                found += workspace
                    .search(&owner, &cases, question, 20)
                    .await
                    .expect("searched")
                    .len();
                times.push(started.elapsed());
            }
            let first = times[0];
            times.sort_unstable();
            println!(
                "{what}: first {first:.1?}, p50 {:.1?}, p99 {:.1?}, {found} passages found",
                times[times.len() / 2],
                times[times.len() * 99 / 100]
            );
        }
        let sizes = workspace.sizes().await.expect("sizes");
        println!("database without vectors {} bytes", sizes.store_bytes);
        let kept = by_meaning(&workspace, &owner, &cases).await;
        let again = by_meaning(&workspace, &owner, &cases).await;
        let anew = Workspace::open(folder.path(), Arc::new(|| 0))
            .await
            .expect("a workspace");
        let read = by_meaning(&anew, &owner, &cases).await;
        println!(
            "vectors: made and kept in {kept:.1?}, first search of a process {read:.1?}, another {again:.1?}"
        );
        let sizes = workspace.sizes().await.expect("sizes");
        println!(
            "text {} bytes, database {} bytes",
            sizes.text_bytes, sizes.store_bytes
        );
    });
}
