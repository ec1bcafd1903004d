//! Builds by a language model, which is played by the test: what it was asked, and what came of each answer.

use std::sync::{Arc, Mutex};

use factum_engine::EngineError;
use factum_engine::build::{BuildOptions, BuildReport, Unwatched};
use factum_engine::transformation::{Generator, ModelShelf};
use factum_graph::run_file::RunFile;
use factum_model::{
    BoxFuture, Capabilities, Constraint, Control, Generation, GenerationRequest, GenerationSink,
    Message, ModelError, ModelIdentity, StopReason, TokenCount,
};
use serde_json::json;

use crate::support::{Desk, doc, who};

type Script = dyn Fn(&GenerationRequest) -> Result<String, ModelError> + Send + Sync;

/// A model whose answers the test writes, and which remembers what it was asked.
struct Scripted {
    identity: ModelIdentity,
    script: Box<Script>,
    asked: Mutex<Vec<GenerationRequest>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl Scripted {
    fn new(
        script: impl Fn(&GenerationRequest) -> Result<String, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            identity: ModelIdentity::new(json!({"kind": "scripted"})),
            script: Box::new(script),
            asked: Mutex::default(),
        })
    }

    fn take_asked(&self) -> Vec<GenerationRequest> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl factum_model::Generator for Scripted {
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
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>> {
        let words = messages
            .iter()
            .map(|m| m.content.split_whitespace().count());
        let tokens = u32::try_from(words.sum::<usize>()).unwrap();
        Box::pin(async move {
            Ok(TokenCount {
                tokens,
                exact: true,
            })
        })
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
                let tokens = self.count_tokens(&request.messages).await.unwrap().tokens;
                if tokens > request.input_budget {
                    let budget = request.input_budget;
                    sink.finished(place, Err(ModelError::OverBudget { tokens, budget }));
                    continue;
                }
                self.asked.lock().unwrap().push(request.clone());
                let answer = (self.script)(request).map(|text| {
                    let stop = if text.ends_with("<length>") {
                        StopReason::Length
                    } else {
                        StopReason::End
                    };
                    Generation {
                        new_tokens: 7,
                        prompt_tokens: tokens,
                        text,
                        token_ids: None,
                        stop,
                        tokens_bounded: false,
                        seconds: 0.0,
                        device: None,
                        memory_bytes: None,
                        system_fingerprint: None,
                        retries: 0,
                    }
                });
                sink.finished(place, answer);
            }
        })
    }
}

struct Shelf(ModelIdentity);

impl ModelShelf for Shelf {
    fn identity(&self, name: &str) -> Result<ModelIdentity, String> {
        if name == "scripted" {
            Ok(self.0.clone())
        } else {
            Err("not on this shelf".to_owned())
        }
    }
}

fn shown(request: &GenerationRequest) -> &str {
    &request.messages.last().unwrap().content
}

/// The passages a request shows: id and text.
fn passages(request: &GenerationRequest) -> Vec<(String, String)> {
    shown(request)
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("] "))
        .map(|(id, text)| (id.to_owned(), text.to_owned()))
        .collect()
}

/// The first three passages, word for word: an honest answer for `narrative`.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a script may fail, this one does not"
)]
fn honest(request: &GenerationRequest) -> Result<String, ModelError> {
    let claims: Vec<_> = passages(request)
        .into_iter()
        .take(3)
        .map(|(id, text)| json!({"evidence": [id], "statement": text}))
        .collect();
    Ok(json!({"claims": claims}).to_string())
}

fn letter(n: u32, amount: u32) -> String {
    format!(
        "The insurer inspected flat {n} and measured the moisture in the kitchen floor.\n\n\
         The plumber replaced the burst hose of flat {n} and asked for EUR {amount}.00 on 3 March 2026.\n"
    )
}

async fn desk(profile: &str, toml: Option<&str>, documents: u32) -> Desk {
    let mut desk = Desk::new(profile, toml).await;
    let identity = ModelIdentity::new(json!({"kind": "scripted"}));
    desk.workspace = desk
        .workspace
        .clone()
        .with_models(Arc::new(Shelf(identity)));
    for n in 0..documents {
        desk.publish(&format!("doc-{n:02}.txt"), &letter(n, 100 + n))
            .await;
    }
    desk
}

async fn build(desk: &Desk, model: &Arc<Scripted>, full: bool) -> Result<BuildReport, EngineError> {
    let options = BuildOptions {
        full,
        generator: Generator::model("scripted", Arc::clone(model) as Arc<_>),
    };
    desk.workspace
        .build(&desk.case, &desk.owner, options, &Unwatched)
        .await
}

async fn exported(desk: &Desk, report: &BuildReport) -> RunFile {
    desk.workspace
        .export_run(&report.run_id, &desk.owner)
        .await
        .unwrap()
}

#[tokio::test]
async fn whole_answers_become_cited_claims_that_are_served_without_the_model() {
    let desk = desk("narrative", None, 3).await;
    let model = Scripted::new(honest);
    let report = build(&desk, &model, false).await.unwrap();
    assert_eq!(report.counts.model_calls, report.counts.nodes);
    assert_eq!(report.counts.new_tokens, 7 * report.counts.nodes);
    drop(model);
    let summary = desk.summary(&desk.owner).await;
    assert_eq!(summary.generator, "scripted");
    assert_eq!(summary.claims.len(), 3);
    let text = letter(0, 100);
    for one in summary
        .evidence
        .values()
        .filter(|one| one.doc_id == doc("doc-00.txt"))
    {
        assert!(text.contains(&one.quote));
    }
    let run = exported(&desk, &report).await;
    assert_eq!(run.generations.len() as u64, report.counts.nodes);
    let verified = desk
        .workspace
        .verify_case(&desk.case, &desk.owner)
        .await
        .unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
}

#[tokio::test]
async fn a_new_version_that_leaves_a_segment_alone_costs_no_call_for_it() {
    let desk = desk("narrative", None, 6).await;
    let model = Scripted::new(honest);
    build(&desk, &model, false).await.unwrap();
    model.take_asked();
    // Behind the sentences, so that the passages read are the same.
    desk.publish("doc-02.txt", &(letter(2, 102) + "\n---\n"))
        .await;
    let report = build(&desk, &model, false).await.unwrap();
    assert!(report.counts.recomputed >= 2, "new keys, new nodes");
    assert_eq!(
        model.take_asked().len(),
        0,
        "the same input was answered before"
    );
    assert_eq!(report.counts.model_calls, 0);
    assert_eq!(report.counts.generations_reused, report.counts.recomputed);
    let full = build(&desk, &model, true).await.unwrap();
    assert_eq!(
        full.counts.model_calls, full.counts.nodes,
        "a full build reuses nothing"
    );
    assert_eq!(full.counts.generations_reused, 0);
    let comparison = desk
        .workspace
        .compare(&report.run_id, &full.run_id, &desk.owner)
        .await
        .unwrap();
    assert!(comparison.equal, "{:?}", comparison.differences);
}

#[tokio::test]
async fn an_edit_asks_only_for_what_it_touched() {
    let desk = desk("narrative", None, 6).await;
    let model = Scripted::new(honest);
    build(&desk, &model, false).await.unwrap();
    model.take_asked();
    desk.publish("doc-02.txt", &letter(2, 999)).await;
    let report = build(&desk, &model, false).await.unwrap();
    let asked = model.take_asked();
    assert_eq!(asked.len() as u64, report.counts.model_calls);
    assert!(asked.len() as u64 <= report.counts.recomputed);
    assert!(shown(&asked[0]).contains("EUR 999.00"));
    assert!(
        asked
            .iter()
            .filter(|one| shown(one).starts_with("<document>"))
            .count()
            == 1
    );
}

#[tokio::test]
async fn an_answer_that_breaks_a_rule_is_invalid_kept_and_never_asked_for_again() {
    for (answer, diagnostic) in [
        ("", "empty"),
        ("   \n", "empty"),
        ("{\"claims\":[<length>", "stopped for length"),
        ("I am sorry.", "not JSON"),
        ("{\"claims\":[],\"claims\":[]}", "twice"),
        (
            "{\"claims\":[{\"evidence\":[\"e1\"],\"statement\":NaN}]}",
            "not JSON",
        ),
        ("{\"claims\":[],\"note\":1}", "unknown key"),
        (
            "{\"claims\":[{\"evidence\":[\"e99\"],\"statement\":\"x\"}]}",
            "not given",
        ),
        (
            "{\"claims\":[{\"evidence\":[\"e1\",\"e1\"],\"statement\":\"x\"}]}",
            "twice",
        ),
        (
            "{\"claims\":[{\"evidence\":[],\"statement\":\"x\"}]}",
            "cites 0",
        ),
        ("{\"claims\":[{\"evidence\":[\"e1\"]}]}", "missing"),
        (
            "{\"claims\":[{\"evidence\":[\"e1\"],\"statement\":7}]}",
            "not a text",
        ),
        ("[]", "not an object"),
    ] {
        let desk = desk("narrative", None, 1).await;
        let model = Scripted::new(move |_| Ok(answer.to_owned()));
        let report = build(&desk, &model, false).await.unwrap();
        let run = exported(&desk, &report).await;
        let leaf = &run.nodes[0].result;
        assert_eq!(leaf.status.word(), "INVALID", "{answer}");
        let said = leaf.diagnostic.clone().unwrap();
        assert!(said.contains(diagnostic), "{answer}: {said}");
        let id = leaf.generation.as_ref().unwrap();
        assert_eq!(
            run.generations[id]["text"], answer,
            "the whole output is kept"
        );
        assert_eq!(
            model.take_asked().len(),
            1,
            "above an empty leaf nothing is asked"
        );
        build(&desk, &model, false).await.unwrap();
        assert_eq!(model.take_asked().len(), 0);
        // The root is PARTIAL and empty, not INVALID.
        assert_eq!(desk.summary(&desk.owner).await.claims.len(), 0);
    }
}

#[tokio::test]
async fn two_corrections_are_made_and_recorded() {
    let desk = desk("narrative", None, 1).await;
    let model = Scripted::new(|request| Ok(format!("\n```json\n{}\n```\n", honest(request)?)));
    let report = build(&desk, &model, false).await.unwrap();
    let run = exported(&desk, &report).await;
    assert_eq!(
        run.nodes[0].result.repairs,
        ["outer-white-space", "json-fence"]
    );
    assert_eq!(run.nodes[0].result.status.word(), "VALID");
}

#[tokio::test]
async fn an_invalid_root_is_refused() {
    let desk = desk("narrative", None, 2).await;
    let model = Scripted::new(|request| {
        if shown(request).starts_with("<notes>") {
            Ok("no".to_owned())
        } else {
            honest(request)
        }
    });
    build(&desk, &model, false).await.unwrap();
    assert_eq!(desk.refusal(&desk.owner).await.status.word(), "INVALID");
}

#[tokio::test]
async fn a_lost_call_leaves_the_run_incomplete_and_the_next_build_goes_on() {
    let desk = desk("narrative", None, 6).await;
    let model = Scripted::new(|request| {
        if shown(request).contains("flat 4") {
            return Err(ModelError::Timeout {
                seconds: 1,
                attempts: 3,
            });
        }
        honest(request)
    });
    let error = build(&desk, &model, false).await.unwrap_err();
    let EngineError::Incomplete { lost, first, .. } = error else {
        panic!("{error}");
    };
    assert!(lost >= 2, "the leaf and all above it");
    assert!(matches!(first, ModelError::Timeout { .. }));
    let asked = model.take_asked();
    assert_eq!(
        asked
            .iter()
            .filter(|one| shown(one).starts_with("<document>"))
            .count(),
        6,
        "the other nodes are finished"
    );
    assert_eq!(desk.refusal(&desk.owner).await.status.word(), "ABSENT");
    let healed = Scripted::new(honest);
    build(&desk, &healed, false).await.unwrap();
    let asked = healed.take_asked();
    assert_eq!(asked.len() as u64, lost, "only what was lost is asked for");
    assert_eq!(
        asked
            .iter()
            .filter(|one| shown(one).starts_with("<document>"))
            .count(),
        1
    );
    desk.summary(&desk.owner).await;
}

#[tokio::test]
async fn input_over_its_budget_is_refused_and_never_sent() {
    let toml = "extends = \"narrative\"\n[model]\nleaf_input_tokens = 200\n";
    let desk = desk("mine", Some(toml), 1).await;
    desk.publish(
        "long.txt",
        &"The surveyor measured the wall again and again. ".repeat(60),
    )
    .await;
    let model = Scripted::new(honest);
    let report = build(&desk, &model, false).await.unwrap();
    let run = exported(&desk, &report).await;
    let invalid: Vec<_> = run
        .nodes
        .iter()
        .filter(|n| n.result.status.word() == "INVALID")
        .collect();
    assert_eq!(invalid.len(), 1);
    assert!(
        invalid[0]
            .result
            .diagnostic
            .as_ref()
            .unwrap()
            .contains("200 are allowed")
    );
    assert!(invalid[0].result.generation.is_none());
    assert!(
        model
            .take_asked()
            .iter()
            .all(|one| !shown(one).contains("surveyor"))
    );
}

#[tokio::test]
async fn revoked_document_never_reaches_the_model() {
    let desk = desk("narrative", None, 4).await;
    let broker = who("broker");
    let (workspace, case, owner) = (&desk.workspace, &desk.case, &desk.owner);
    workspace.grant(owner, case, &[], &broker).await.unwrap();
    workspace
        .revoke(owner, case, &[doc("doc-01.txt")], &broker)
        .await
        .unwrap();
    workspace
        .withdraw(owner, case, &doc("doc-02.txt"))
        .await
        .unwrap();
    let model = Scripted::new(honest);
    let options = BuildOptions {
        full: false,
        generator: Generator::model("scripted", Arc::clone(&model) as Arc<_>),
    };
    workspace
        .build(case, &broker, options, &Unwatched)
        .await
        .unwrap();
    let asked = model.take_asked();
    assert!(!asked.is_empty());
    for request in asked {
        let all = format!("{request:?}");
        assert!(
            !all.contains("flat 1 ") && !all.contains("flat 2 "),
            "{all}"
        );
    }
}

#[tokio::test]
async fn unsupported_claims_are_withheld_and_not_handed_on() {
    let desk = desk("narrative", None, 1).await;
    let model = Scripted::new(|_| {
        Ok(
            "{\"claims\":[{\"evidence\":[\"e1\"],\"statement\":\"Mr Brandt owes EUR 5,000.\"}]}"
                .to_owned(),
        )
    });
    let report = build(&desk, &model, false).await.unwrap();
    assert_eq!(
        report.counts.model_calls, 1,
        "nothing is handed on, so nothing is asked above"
    );
    let run = exported(&desk, &report).await;
    assert_eq!(run.nodes[0].result.withheld.len(), 1);
    assert!(desk.summary(&desk.owner).await.claims.is_empty());
}

#[tokio::test]
async fn the_same_input_is_asked_once() {
    let desk = Desk::new("narrative", None).await;
    for n in 0..3 {
        desk.publish(&format!("copy-{n}.txt"), &letter(7, 70)).await;
    }
    let model = Scripted::new(honest);
    let report = build(&desk, &model, false).await.unwrap();
    let leaves = model.take_asked();
    let leaves = leaves
        .iter()
        .filter(|one| shown(one).starts_with("<document>"))
        .count();
    assert_eq!(leaves, 1);
    assert_eq!(report.counts.generations_reused, 2);
}

fn facts(n: u32, delivery: &str) -> String {
    format!(
        "Supply note {n}\nProduct P-10-{n:02} delivery: {delivery}.\nProduct P-10-{n:02} status: open.\n\
         Product P-10-{n:02} quantity: {n}.\nProduct P-10-{n:02} site: Harwick.\n\
         The delivery on 1 May is no longer planned.\n\"Product P-10-{n:02} status: closed.\"\n"
    )
}

#[tokio::test]
async fn the_published_call_counts_come_out_whatever_the_model_says() {
    for nonsense in [false, true] {
        let mut desk = Desk::new("controlled", None).await;
        let identity = ModelIdentity::new(json!({"kind": "scripted"}));
        desk.workspace = desk
            .workspace
            .clone()
            .with_models(Arc::new(Shelf(identity)));
        for n in 0..12 {
            desk.publish(&format!("doc-{n:02}.txt"), &facts(n, "18 October"))
                .await;
        }
        let model = Scripted::new(move |_| {
            Ok(if nonsense {
                "nonsense"
            } else {
                "{\"claims\":[]}"
            }
            .to_owned())
        });
        let calls = |report: BuildReport| (report.counts.recomputed, report.counts.model_calls);
        assert_eq!(calls(build(&desk, &model, false).await.unwrap()), (16, 16));
        let (workspace, case, owner) = (&desk.workspace, &desk.case, &desk.owner);
        let mut full = Vec::new();
        desk.publish("doc-00.txt", &facts(0, "25 October")).await;
        assert_eq!(calls(build(&desk, &model, false).await.unwrap()), (3, 3));
        full.push(build(&desk, &model, true).await.unwrap().counts.model_calls);
        workspace
            .withdraw(owner, case, &doc("doc-04.txt"))
            .await
            .unwrap();
        assert_eq!(calls(build(&desk, &model, false).await.unwrap()), (3, 2));
        full.push(build(&desk, &model, true).await.unwrap().counts.model_calls);
        workspace
            .revoke(owner, case, &[doc("doc-08.txt")], owner)
            .await
            .unwrap();
        assert_eq!(calls(build(&desk, &model, false).await.unwrap()), (3, 2));
        full.push(build(&desk, &model, true).await.unwrap().counts.model_calls);
        assert_eq!(full, [16, 15, 14]);
        assert!(
            model
                .take_asked()
                .iter()
                .all(|one| one.constraint == Constraint::None)
        );
    }
}

#[tokio::test]
async fn a_changed_prompt_makes_again_only_the_nodes_that_are_told_it() {
    let toml = "extends = \"narrative\"\n";
    let desk = desk("mine", Some(toml), 6).await;
    let model = Scripted::new(honest);
    build(&desk, &model, false).await.unwrap();
    model.take_asked();
    let path = desk.workspace.profiles_folder().join("mine.toml");
    std::fs::write(
        path,
        format!("{toml}[model]\nreduction_prompt = \"Keep what matters.\"\n"),
    )
    .unwrap();
    let refusal = desk.refusal(&desk.owner).await;
    assert_eq!(refusal.reasons[0].kind, "profile");
    let report = build(&desk, &model, false).await.unwrap();
    assert_eq!(report.counts.reused, 6, "all leaves");
    let asked = model.take_asked();
    assert!(asked.iter().all(|one| shown(one).starts_with("<notes>")));
    assert_eq!(asked.len() as u64, report.counts.recomputed);
}

#[tokio::test]
async fn a_summary_of_a_model_that_is_not_known_here_is_stale() {
    let desk = Desk::new("narrative", None).await;
    desk.publish("a.txt", &letter(1, 10)).await;
    build(&desk, &Scripted::new(honest), false).await.unwrap();
    let refusal = desk.refusal(&desk.owner).await;
    assert_eq!(
        (refusal.status.word(), refusal.reasons[0].kind.as_str()),
        ("STALE", "generator")
    );
}

#[tokio::test]
async fn incremental_equals_full_after_each_of_many_changes() {
    let desk = desk("narrative", None, 8).await;
    // An answer that depends on all that was shown.
    let model = Scripted::new(|request| {
        let all = passages(request);
        let pick = shown(request).bytes().map(usize::from).sum::<usize>();
        let claims: Vec<_> = (0..3.min(all.len()))
            .map(|n| &all[(pick + 5 * n) % all.len()])
            .map(|(id, text)| json!({"evidence": [id], "statement": text}))
            .collect();
        Ok(json!({"claims": claims}).to_string())
    });
    let (workspace, case, owner) = (&desk.workspace, &desk.case, &desk.owner);
    for step in 0..12_u32 {
        match step % 4 {
            0 => {
                desk.publish(
                    &format!("doc-{:02}.txt", step % 8),
                    &letter(step, 500 + step),
                )
                .await;
            }
            1 => {
                desk.publish(&format!("new-{step}.txt"), &letter(step, 900 + step))
                    .await;
            }
            2 => {
                let id = doc(&format!("doc-{:02}.txt", (step * 3) % 8));
                workspace.withdraw(owner, case, &id).await.unwrap();
            }
            _ => {
                let id = doc(&format!("doc-{:02}.txt", ((step - 1) * 3) % 8));
                workspace.reinstate(owner, case, &id).await.unwrap();
            }
        }
        let incremental = build(&desk, &model, false).await.unwrap();
        let full = build(&desk, &model, true).await.unwrap();
        let comparison = workspace
            .compare(&incremental.run_id, &full.run_id, owner)
            .await
            .unwrap();
        assert!(
            comparison.equal,
            "step {step}: {:?}",
            comparison.differences
        );
    }
}
