//! What a sentence model adds to search, on the meetings of `qmsum.rs`. Skipped where the data is absent, or where
//! `FACTUM_TEST_EMBEDDER` names no sentence model's folder. The figures are in `docs/asking.md`.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use factum_engine::retrieve::SearchIn;
use factum_engine::searching::{ByMeaning, Order};
use factum_model::generator::BoxFuture;
use factum_model::local::LocalEmbedder;
use factum_model::local_identity::EmbedderOptions;
use factum_model::pins::Registry;
use factum_model::{Control, Embedder, ModelError, ModelIdentity};

use crate::qmsum::{Meeting, Scores, meetings, room_of};
use crate::room::{Room, case};

/// Remembers vectors, since each meeting is searched alone and among the others.
#[derive(Debug)]
struct Remembering {
    inner: LocalEmbedder,
    known: Mutex<HashMap<String, Vec<f32>>>,
    /// Texts that were computed, their bytes, and how long it took.
    work: Mutex<(u32, usize, Duration)>,
}

impl Remembering {
    async fn vectors(
        &self,
        texts: &[String],
        control: &Control,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut out = Vec::new();
        for text in texts {
            let known = self.known.lock().unwrap().get(text).cloned();
            if let Some(vector) = known {
                out.push(vector);
                continue;
            }
            let began = Instant::now();
            let made = self
                .inner
                .embed(std::slice::from_ref(text), control)
                .await?;
            {
                let mut work = self.work.lock().unwrap();
                *work = (work.0 + 1, work.1 + text.len(), work.2 + began.elapsed());
            }
            self.known
                .lock()
                .unwrap()
                .insert(text.clone(), made[0].clone());
            out.extend(made);
        }
        Ok(out)
    }
}

impl Embedder for Remembering {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        Box::pin(self.vectors(texts, control))
    }
}

fn embedder(cache: &std::path::Path) -> Option<Remembering> {
    let folder = PathBuf::from(std::env::var_os("FACTUM_TEST_EMBEDDER")?);
    let registry = Registry::load(cache).unwrap();
    let name = folder.to_str().unwrap();
    let prepared = registry.prepare(name, &tokio_util::sync::CancellationToken::new());
    let prepared = prepared.unwrap();
    let options = EmbedderOptions::new(&prepared.gguf, prepared.sha256.to_hex());
    Some(Remembering {
        inner: LocalEmbedder::load(&options).unwrap(),
        known: Mutex::default(),
        work: Mutex::default(),
    })
}

async fn score(
    room: &Room,
    of: &str,
    meeting: &Meeting,
    embedder: &Remembering,
    order: Order,
    scores: &mut Scores,
) {
    let control = Control::default();
    let by = ByMeaning {
        embedder,
        control: &control,
        watch: &|_, _| {},
        order,
    };
    let cases = [SearchIn {
        case: case(of),
        documents: BTreeSet::new(),
    }];
    for (question, gold) in &meeting.questions {
        let found = room
            .workspace
            .search_by_meaning(&room.owner, &cases, question, 20, &by)
            .await
            .unwrap();
        scores.add(&found.hits, meeting, gold);
    }
}

#[tokio::test]
async fn gold_turns_are_found_by_meaning() {
    let cache = tempfile::tempdir().unwrap();
    let (Some(meetings), Some(embedder)) = (meetings(), embedder(cache.path())) else {
        eprintln!(
            "skipped: gold_turns_are_found_by_meaning needs ../shared/data/qmsum and FACTUM_TEST_EMBEDDER"
        );
        return;
    };
    let room = room_of(&meetings).await;
    let mut scores: [Scores; 4] = Default::default();
    let [apart, apart_vectors, together, together_vectors] = &mut scores;
    for meeting in &meetings {
        let name = meeting.name.as_str();
        room.publish(name, name, &meeting.text).await;
        score(&room, name, meeting, &embedder, Order::Fused, apart).await;
        score(
            &room,
            name,
            meeting,
            &embedder,
            Order::Vectors,
            apart_vectors,
        )
        .await;
    }
    for meeting in &meetings {
        score(&room, "all", meeting, &embedder, Order::Fused, together).await;
        score(
            &room,
            "all",
            meeting,
            &embedder,
            Order::Vectors,
            together_vectors,
        )
        .await;
    }
    let kinds = [
        "apart, fused",
        "apart, vectors",
        "together, fused",
        "together, vectors",
    ];
    for (kind, scores) in kinds.iter().zip(&scores) {
        println!("{kind}: {:.3?}", scores.means());
    }
    let (texts, bytes, took) = *embedder.work.lock().unwrap();
    println!("{texts} passages and questions, {bytes} bytes, {took:.1?}");
    let (recall, any) = scores[0].means();
    assert!(recall[2] > 0.2 && any[2] > 0.8, "{recall:?} {any:?}");
}
