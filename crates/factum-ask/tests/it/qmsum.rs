//! How well search finds the turns that people marked as evidence, on 35 meetings of QMSum. Skipped where the data
//! is absent. The figures are in `docs/asking.md`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use factum_engine::retrieve::Hit;
use serde_json::Value;

use crate::room::Room;

pub(crate) struct Meeting {
    pub(crate) name: String,
    pub(crate) text: String,
    /// First and one past the last code point of each turn.
    turns: Vec<(u32, u32)>,
    /// Questions with their gold turns.
    pub(crate) questions: Vec<(String, BTreeSet<usize>)>,
}

pub(crate) fn meetings() -> Option<Vec<Meeting>> {
    let data = std::env::var_os("FACTUM_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let folder = data.join("qmsum/val");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .ok()?
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    Some(files.iter().map(meeting).collect())
}

fn meeting(path: &PathBuf) -> Meeting {
    let value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (mut text, mut turns, mut at) = (String::new(), Vec::new(), 0u32);
    for turn in value["meeting_transcripts"].as_array().unwrap() {
        let content = turn["content"].as_str().unwrap().replace('\n', " ");
        let line = format!("{}: {content}", turn["speaker"].as_str().unwrap());
        let length = u32::try_from(line.chars().count()).unwrap();
        turns.push((at, at + length));
        at += length + 1;
        text.push_str(&line);
        text.push('\n');
    }
    let number = |value: &Value| value.as_str().unwrap().parse::<usize>().unwrap();
    let questions = value["specific_query_list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let spans = one["relevant_text_span"].as_array().unwrap();
            let gold = spans
                .iter()
                .flat_map(|span| number(&span[0])..=number(&span[1]));
            (one["query"].as_str().unwrap().to_owned(), gold.collect())
        })
        .collect();
    Meeting {
        name: format!("{}.txt", path.file_stem().unwrap().to_string_lossy()),
        text,
        turns,
        questions,
    }
}

#[derive(Debug, Default)]
pub(crate) struct Scores {
    pub(crate) questions: f64,
    recall: [f64; 3],
    any: [f64; 3],
}

const DEPTHS: [usize; 3] = [5, 10, 20];

async fn score(room: &Room, of: &str, meeting: &Meeting, scores: &mut Scores) {
    for (question, gold) in &meeting.questions {
        let hits = room.search("local", of, question, 20).await;
        scores.add(&hits, meeting, gold);
    }
}

impl Scores {
    /// Adds what one question found.
    pub(crate) fn add(&mut self, hits: &[Hit], meeting: &Meeting, gold: &BTreeSet<usize>) {
        self.questions += 1.0;
        for (at, depth) in DEPTHS.iter().enumerate() {
            let mut found = BTreeSet::new();
            for hit in hits.iter().take(*depth) {
                if hit.evidence.doc_id.as_str() != meeting.name {
                    continue;
                }
                let overlaps =
                    |turn: &(u32, u32)| turn.0 < hit.evidence.end && hit.evidence.start < turn.1;
                found.extend((0..meeting.turns.len()).filter(|n| overlaps(&meeting.turns[*n])));
            }
            let both = found.intersection(gold).count();
            #[expect(clippy::cast_precision_loss, reason = "counts of turns")]
            let recall = both as f64 / gold.len() as f64;
            self.recall[at] += recall;
            self.any[at] += f64::from(u8::from(both > 0));
        }
    }

    pub(crate) fn means(&self) -> ([f64; 3], [f64; 3]) {
        (
            self.recall.map(|sum| sum / self.questions),
            self.any.map(|sum| sum / self.questions),
        )
    }
}

/// A case file for each meeting, still empty, and one with all of them.
pub(crate) async fn room_of(meetings: &[Meeting]) -> Room {
    let mut cases: Vec<&str> = meetings.iter().map(|one| one.name.as_str()).collect();
    cases.push("all");
    let room = Room::new(&cases).await;
    let files: Vec<_> = meetings
        .iter()
        .map(|one| (one.name.clone(), one.text.clone()))
        .collect();
    room.publish_all("all", &files).await;
    room
}

#[tokio::test]
async fn gold_turns_of_meetings_are_found() {
    let Some(meetings) = meetings() else {
        eprintln!("skipped: gold_turns_of_meetings_are_found needs ../shared/data/qmsum");
        return;
    };
    let room = room_of(&meetings).await;
    let (mut apart, mut together) = (Scores::default(), Scores::default());
    for meeting in &meetings {
        room.publish(&meeting.name, &meeting.name, &meeting.text)
            .await;
        score(&room, &meeting.name, meeting, &mut apart).await;
        score(&room, "all", meeting, &mut together).await;
    }
    println!(
        "apart {:?}\ntogether {:?}\nquestions {}",
        apart.means(),
        together.means(),
        apart.questions
    );
    let (recall, any) = apart.means();
    assert!(recall[2] > 0.2 && any[2] > 0.8, "{recall:?} {any:?}");
}
