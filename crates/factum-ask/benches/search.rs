//! Search over 100,000 passages of a made-up case file, whose words are as unevenly spread as those of a language.
//! Prints the time that half, and one in a hundred, of 500 different questions take longer than.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_engine::publish::ReadFile;
use factum_engine::retrieve::SearchIn;
use factum_engine::{OWNER, Workspace};
use factum_ingest::Limits;
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
        println!(
            "text {} bytes, database {} bytes",
            sizes.text_bytes, sizes.store_bytes
        );
    });
}
