//! Documents that are hidden while a model is asked: what it may still read, and what the build comes to.

use std::sync::{Arc, Mutex};

use factum_base::CaseId;
use factum_engine::build::{BuildOptions, BuildReport, Unwatched};
use factum_engine::transformation::Generator;
use factum_engine::{EngineError, Workspace};
use factum_model::{
    BoxFuture, Capabilities, Control, Generation, GenerationRequest, GenerationSink, Message,
    ModelError, ModelIdentity, StopReason, TokenCount,
};
use serde_json::json;

use crate::support::{Desk, doc, who};

/// What happens while the model works on a request: the last of those that it was asked so far, in all builds.
type Meanwhile = Box<dyn Fn(&[String]) -> BoxFuture<'static, ()> + Send + Sync>;

/// A model that answers one request after another with the first passage, and during whose work things happen.
struct Slow {
    identity: ModelIdentity,
    meanwhile: Meanwhile,
    asked: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slow")
    }
}

impl Slow {
    fn new(meanwhile: Meanwhile) -> Arc<Self> {
        Arc::new(Self {
            identity: ModelIdentity::new(json!({"kind": "slow"})),
            meanwhile,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn begin(&self, request: &GenerationRequest) -> BoxFuture<'static, ()> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(format!("{request:?}"));
        (self.meanwhile)(&asked)
    }
}

impl factum_model::Generator for Slow {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            constraints: Vec::new(),
            parallel: 1,
        }
    }

    fn count_tokens<'a>(
        &'a self,
        _: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>> {
        let counted = TokenCount {
            tokens: 1,
            exact: true,
        };
        Box::pin(std::future::ready(Ok(counted)))
    }

    fn generate<'a>(
        &'a self,
        requests: &'a [GenerationRequest],
        control: &'a Control,
        sink: &'a dyn GenerationSink,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for (place, request) in requests.iter().enumerate() {
                if !control.admits(place).await {
                    sink.finished(place, Err(ModelError::Cancelled));
                    continue;
                }
                let work = self.begin(request);
                let done = control.cancel.run_until_cancelled(work).await;
                let outcome = done.map(|()| answer(request));
                sink.finished(place, outcome.ok_or(ModelError::Cancelled));
            }
        })
    }
}

fn answer(request: &GenerationRequest) -> Generation {
    let shown = &request.messages.last().unwrap().content;
    let first = shown
        .lines()
        .find_map(|line| line.strip_prefix("[e1] "))
        .unwrap();
    Generation {
        text: json!({"claims": [{"evidence": ["e1"], "statement": first}]}).to_string(),
        token_ids: None,
        stop: StopReason::End,
        prompt_tokens: 1,
        new_tokens: 5,
        tokens_bounded: false,
        seconds: 0.0,
        device: None,
        memory_bytes: None,
        system_fingerprint: None,
        retries: 0,
    }
}

const DOCUMENTS: usize = 10;

/// Ten documents, each with a word of its own, that `broker` may see.
async fn desk() -> Desk {
    let desk = Desk::new("narrative", None).await;
    for n in 0..DOCUMENTS {
        let text = format!("The insurer inspected the kitchen floor of house-{n:02} in March.\n");
        desk.publish(&name(n), &text).await;
    }
    let broker = who("broker");
    desk.workspace
        .grant(&desk.owner, &desk.case, &[], &broker)
        .await
        .unwrap();
    desk
}

fn name(n: usize) -> String {
    format!("doc-{n:02}.txt")
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap()
}

fn holds(asked: &[String], n: usize) -> usize {
    let word = format!("house-{n:02}");
    asked.iter().filter(|one| one.contains(&word)).count()
}

async fn build(desk: &Desk, model: &Arc<Slow>, full: bool) -> Result<BuildReport, EngineError> {
    let options = BuildOptions {
        full,
        generator: Generator::model("slow", Arc::clone(model) as Arc<_>),
    };
    desk.workspace
        .build(&desk.case, &who("broker"), options, &Unwatched)
        .await
}

/// Documents by whether a model read them.
fn read(asked: &[String]) -> (Vec<usize>, Vec<usize>) {
    (0..DOCUMENTS).partition(|&n| holds(asked, n) > 0)
}

/// The document that was read first.
fn first(asked: &[String]) -> usize {
    (0..DOCUMENTS).find(|&n| holds(&asked[..1], n) > 0).unwrap()
}

/// What the owner does during the model's request `at`; afterwards the model goes on, or works for ever.
fn during<F>(desk: &Desk, at: usize, then_hang: bool, act: F) -> Meanwhile
where
    F: Fn(Workspace, CaseId, &[String]) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let (workspace, case) = (desk.workspace.clone(), desk.case.clone());
    Box::new(move |asked| {
        if asked.len() != at + 1 {
            return Box::pin(std::future::ready(()));
        }
        let acting = act(workspace.clone(), case.clone(), asked);
        Box::pin(async move {
            acting.await;
            if then_hang {
                std::future::pending::<()>().await;
            }
        })
    })
}

async fn revoke(workspace: &Workspace, case: &CaseId, documents: &[usize]) {
    let documents: Vec<_> = documents.iter().map(|&n| doc(&name(n))).collect();
    workspace
        .revoke(&who("local"), case, &documents, &who("broker"))
        .await
        .unwrap();
}

async fn withdraw(workspace: &Workspace, case: &CaseId, document: usize) {
    workspace
        .withdraw(&who("local"), case, &doc(&name(document)))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_request_not_yet_begun_is_not_sent_once_its_document_is_revoked() {
    let desk = desk().await;
    let model = Slow::new(during(&desk, 2, false, |workspace, case, asked| {
        let unread = read(asked).1[0];
        Box::pin(async move { revoke(&workspace, &case, &[unread]).await })
    }));
    let report = build(&desk, &model, false).await.unwrap();
    let asked = model.asked();
    let unread = read(&asked[..3]).1;
    assert_eq!(unread.len(), DOCUMENTS - 3);
    assert_eq!(
        read(&asked).1,
        [unread[0]],
        "it was not begun when it was revoked"
    );
    // Three were finished under the first plan, and are nodes of the second.
    assert_eq!(report.counts.reused, 3);
    assert_eq!(report.counts.model_calls, count(asked.len() - 3));
    // The leaf that may not be read is made without the model.
    assert_eq!(report.counts.recomputed, report.counts.model_calls + 1);
    assert_eq!(
        report.counts.nodes,
        report.counts.recomputed + report.counts.reused
    );
    let mut once = asked.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(
        once.len(),
        asked.len(),
        "what was finished is not asked again"
    );
}

#[tokio::test]
async fn a_request_under_way_is_cancelled_once_any_document_of_the_plan_is_hidden() {
    for withdrawn in [false, true] {
        let desk = desk().await;
        let model = Slow::new(during(&desk, 4, true, move |workspace, case, asked| {
            let hidden = first(asked);
            Box::pin(async move {
                if withdrawn {
                    withdraw(&workspace, &case, hidden).await;
                } else {
                    revoke(&workspace, &case, &[hidden]).await;
                }
            })
        }));
        let report = build(&desk, &model, false).await.unwrap();
        let asked = model.asked();
        let once = holds(&asked, first(&asked));
        assert_eq!(once, 1, "as its own leaf, before it was hidden");
        // Four were finished under the first plan. One of them is of the hidden document, and no node any more.
        assert_eq!(report.counts.reused, 3);
        assert_eq!(report.counts.model_calls, count(asked.len() - 5));
        assert_eq!(asked[4], asked[5], "what was cancelled is asked again");
    }
}

#[tokio::test]
async fn words_of_a_document_that_is_hidden_between_leaves_and_reductions_are_not_handed_up() {
    let desk = desk().await;
    let last_leaf = DOCUMENTS - 1;
    let model = Slow::new(during(&desk, last_leaf, false, |workspace, case, asked| {
        let hidden = first(asked);
        Box::pin(async move { revoke(&workspace, &case, &[hidden]).await })
    }));
    build(&desk, &model, false).await.unwrap();
    let asked = model.asked();
    let held = holds(&asked, first(&asked));
    assert_eq!(held, 1, "only its own leaf ever held its words");
    assert!(asked.len() > DOCUMENTS, "reductions were asked");
}

#[tokio::test]
async fn what_hides_nothing_stops_nothing() {
    let desk = desk().await;
    let model = Slow::new(during(&desk, 2, false, |workspace, case, _| {
        Box::pin(async move {
            let (owner, someone) = (who("local"), who("someone"));
            workspace.grant(&owner, &case, &[], &someone).await.unwrap();
            workspace
                .revoke(&owner, &case, &[doc(&name(7))], &someone)
                .await
                .unwrap();
            // Gone and back again before anyone looked.
            withdraw(&workspace, &case, 8).await;
            workspace
                .reinstate(&owner, &case, &doc(&name(8)))
                .await
                .unwrap();
        })
    }));
    let report = build(&desk, &model, false).await.unwrap();
    assert_eq!(report.counts.reused, 0, "one run made it all");
    assert_eq!(report.counts.model_calls, count(model.asked().len()));
    assert_eq!(report.counts.model_calls, report.counts.nodes);
}

#[tokio::test]
async fn who_may_see_nothing_any_more_is_told_so_and_nothing_is_read_for_it() {
    let desk = desk().await;
    let model = Slow::new(during(&desk, 2, true, |workspace, case, _| {
        Box::pin(async move { revoke(&workspace, &case, &[]).await })
    }));
    let error = build(&desk, &model, false).await.unwrap_err();
    assert!(matches!(error, EngineError::Forbidden { .. }), "{error}");
    assert_eq!(model.asked().len(), 3);
}

/// Withdraws a document that was not read yet, during every `step`th request.
fn one_by_one(desk: &Desk, step: usize) -> Meanwhile {
    let (workspace, case) = (desk.workspace.clone(), desk.case.clone());
    let left = Mutex::new((0..DOCUMENTS).collect::<Vec<_>>());
    Box::new(move |asked| {
        let mut left = left.lock().unwrap();
        left.retain(|&n| holds(asked, n) == 0);
        let next = asked.len().is_multiple_of(step).then(|| left.pop());
        let (workspace, case) = (workspace.clone(), case.clone());
        Box::pin(async move {
            if let Some(document) = next.flatten() {
                withdraw(&workspace, &case, document).await;
            }
        })
    })
}

#[tokio::test]
async fn a_build_that_gets_on_is_not_given_up_however_often_documents_are_hidden() {
    let desk = desk().await;
    // Each plan lets one document be read and loses another, and so more often than a build may start in vain.
    let model = Slow::new(one_by_one(&desk, 1));
    let report = build(&desk, &model, false).await.unwrap();
    assert_eq!(report.status.word(), "VALID");
    assert_eq!(
        report.counts.nodes,
        report.counts.recomputed + report.counts.reused
    );
    let asked = model.asked();
    assert_eq!(read(&asked).1.len(), DOCUMENTS / 2);
    for n in read(&asked).0 {
        let as_leaf = asked
            .iter()
            .filter(|one| one.contains("<document>") && one.contains(&format!("house-{n:02}")));
        assert_eq!(as_leaf.count(), 1, "what was finished was kept");
    }
}

#[tokio::test]
async fn a_full_build_that_is_overtaken_again_and_again_gives_up() {
    let desk = desk().await;
    let model = Slow::new(one_by_one(&desk, 1));
    let error = build(&desk, &model, true).await.unwrap_err();
    assert!(matches!(error, EngineError::Overtaken(5)), "{error}");
}
