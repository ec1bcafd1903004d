//! Asking: one question, or a conversation on the terminal; and what was asked before.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use factum_ask::budget::Limits;
use factum_ask::run::{Answerer, Asking, Embeddings};
use factum_ask::{ActionModel, Answer, AskError, Beginning, Conversation};
use factum_base::{CaseId, DocumentId};
use factum_engine::transformation::Generator;
use factum_model::Control;
use factum_model::openai::OpenAiGenerator;
use serde_json::{Value, json};

use super::{Context, case_id};
use crate::failure::{BadInput, Usage};
use crate::live_answer::LiveAnswer;
use crate::models::{Named, NamedEmbedder, Shelf};
use crate::output::warn;
use crate::text::clean;
use crate::{answer_text, failure, moment};

/// What `factum ask` takes.
#[derive(Args)]
pub(crate) struct AskArgs {
    /// The case file
    case: String,
    /// The question; without it, a conversation begins
    question: Option<String>,
    /// What answers: extractive, local, local:MODEL, openai:URL,MODEL or canned:FILE
    #[arg(long, default_value = "extractive")]
    generator: String,
    /// Another case file to look into
    #[arg(long, value_name = "CASE")]
    also: Vec<String>,
    /// Look only into this document
    #[arg(long, value_name = "DOC")]
    doc: Vec<String>,
    #[command(flatten)]
    finding: FindingArgs,
    #[command(flatten)]
    cost: CostArgs,
}

/// How passages are found.
#[derive(Args)]
pub(crate) struct FindingArgs {
    /// Find passages by their meaning too, with a sentence model in this process: local or local:MODEL. The first
    /// question to a case file reads all of it; what was made of it is kept
    #[arg(long, value_name = "EMBEDDER")]
    embeddings: Option<String>,
}

/// What a question may cost.
#[derive(Args)]
pub(crate) struct CostArgs {
    /// Requests to the model for one question; after them it may only cite
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_requests: u32,
    /// Seconds for one question
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: u64,
}

/// What `factum conversation` does.
#[derive(Subcommand)]
pub(crate) enum ConversationCommand {
    /// List your conversations
    #[command(after_help = "Example: factum conversation list")]
    List,
    /// Show a conversation; answers that no longer hold are marked
    #[command(after_help = "Example: factum conversation show conversation-000001")]
    Show {
        /// Its id
        id: String,
    },
    /// Go on with a conversation: finish its unfinished question, or ask another
    #[command(
        after_help = "Example: factum conversation resume conversation-000001 \"And who paid?\""
    )]
    Resume {
        /// Its id
        id: String,
        /// The next question; without it, the conversation goes on
        question: Option<String>,
        /// What answers: extractive, local, local:MODEL, openai:URL,MODEL or canned:FILE; what answered before, otherwise
        #[arg(long)]
        generator: Option<String>,
        #[command(flatten)]
        finding: FindingArgs,
        #[command(flatten)]
        cost: CostArgs,
    },
    /// Delete a conversation with all that was said in it
    #[command(after_help = "Example: factum conversation delete conversation-000001")]
    Delete {
        /// Its id
        id: String,
    },
}

impl AskArgs {
    /// Whether a local model may run in this process.
    #[cfg(all(feature = "local", unix))]
    pub(crate) fn computes(&self) -> bool {
        self.generator.starts_with("local") || self.finding.embeddings.is_some()
    }
}

impl ConversationCommand {
    /// Whether a local model may run in this process.
    #[cfg(all(feature = "local", unix))]
    pub(crate) fn computes(&self) -> bool {
        match self {
            Self::Resume {
                generator, finding, ..
            } => {
                // Which one answered before is not known yet.
                let local = |name: &String| name.starts_with("local");
                generator.as_ref().is_none_or(local) || finding.embeddings.is_some()
            }
            Self::List | Self::Show { .. } | Self::Delete { .. } => false,
        }
    }
}

/// Who answers, at what cost, and how it is stopped.
struct Desk {
    answerer: Answerer,
    embeddings: Option<NamedEmbedder>,
    limits: Limits,
    control: Control,
}

impl Desk {
    async fn new(generator: &str, finding: &FindingArgs, cost: &CostArgs) -> Result<Self> {
        let named = Named::parse(generator)?;
        let mut limits = Limits {
            requests: cost.max_requests,
            time: Duration::from_secs(cost.max_seconds),
            ..Limits::default()
        };
        if matches!(named, Named::Local(_)) {
            // What fits into the context that local models are run with.
            limits.input_tokens = 7_000;
            limits.new_tokens = 512;
        }
        let embedder = finding.embeddings.clone();
        let loaded = move || -> Result<_, BadInput> {
            let embeddings = match embedder {
                Some(name) => Some(Shelf::open()?.load_embedder(&name)?),
                None => None,
            };
            Ok((answerer(&named)?, embeddings))
        };
        let (answerer, embeddings) = tokio::task::spawn_blocking(loaded).await??;
        let control = Control {
            cancel: crate::signals::stop_token(),
            ..Control::default()
        };
        Ok(Self {
            answerer,
            embeddings,
            limits,
            control,
        })
    }

    async fn ask(&self, conversation: &mut Conversation, question: Option<&str>) -> Result<Answer> {
        let live = LiveAnswer::new();
        let watch = |done: u64, all: u64| live.preparing(done, all);
        let embeddings = self.embeddings.as_ref().map(|by| Embeddings {
            name: &by.name,
            embedder: &*by.embedder,
            watch: &watch,
        });
        let asking = Asking {
            answerer: &self.answerer,
            limits: self.limits,
            control: &self.control,
            sink: &live,
            embeddings,
        };
        let answer = match question {
            Some(question) => conversation.ask(question, &asking).await,
            None => conversation.resume(&asking).await,
        };
        drop(live);
        if matches!(answer, Err(AskError::Interrupted)) {
            warn(&format!(
                "`factum conversation resume {}` goes on with this question.",
                conversation.id()
            ));
        }
        answer.map_err(flat)
    }
}

fn answerer(named: &Named) -> Result<Answerer, BadInput> {
    let shelf = || Shelf::open();
    let name = named.name();
    match named {
        Named::Extractive => Ok(Answerer::Extractive),
        Named::OpenAi { url, model } => {
            let options = shelf()?.openai_options(url, model, true)?;
            let model = OpenAiGenerator::new(&options).map_err(BadInput::of)?;
            Ok(Answerer::Model {
                name,
                model: Arc::new(model),
            })
        }
        Named::Local(_) | Named::Canned(_) => {
            let Generator::Model(model) = shelf()?.load(named)? else {
                return Ok(Answerer::Extractive);
            };
            let engine = model.engine.clone();
            let engine = engine.ok_or_else(|| BadInput(format!("{name} is not loaded"), None))?;
            Ok(Answerer::Model {
                name,
                model: Arc::new(ActionModel::new(engine)),
            })
        }
        Named::Replay(_) => Err(BadInput(
            "recorded generations answer no questions".to_owned(),
            Some("leave out --generator, or name a model".to_owned()),
        )),
    }
}

// The engine's errors have their own exit codes and hints.
fn flat(error: AskError) -> anyhow::Error {
    match error {
        AskError::Engine(error) => error.into(),
        other => other.into(),
    }
}

pub(super) async fn ask(args: AskArgs, context: &Context<'_>) -> Result<u8> {
    let mut cases = vec![case_id(&args.case)?];
    for case in &args.also {
        cases.push(case_id(case)?);
    }
    let documents: Result<Vec<DocumentId>, _> = args.doc.iter().map(DocumentId::new).collect();
    let documents = documents?;
    let (workspace, principal) = (&context.workspace, &context.principal);
    // Fail on a case file that can't be seen before a model is loaded.
    workspace.check_may_see(principal, &cases).await?;
    known_documents(context, &cases, &documents).await?;
    let desk = Desk::new(&args.generator, &args.finding, &args.cost).await?;
    let question = args.question.as_deref().map(str::trim);
    if question == Some("") {
        return Err(flat(AskError::Empty));
    }
    let title = question.unwrap_or("a conversation").to_owned();
    let beginning = Beginning {
        cases,
        documents,
        compact: true,
        title,
    };
    let Some(question) = question else {
        let first = |title: String| Beginning {
            title,
            ..beginning.clone()
        };
        return talk(None, &first, &desk, context).await;
    };
    let mut conversation = Conversation::begin(workspace, principal, beginning)
        .await
        .map_err(flat)?;
    one(&mut conversation, question, &desk, context).await
}

/// A misspelt document would look like one without an answer. One that is hidden looks like one that is not there.
async fn known_documents(
    context: &Context<'_>,
    cases: &[CaseId],
    documents: &[DocumentId],
) -> Result<()> {
    let mut known = Vec::new();
    for case in cases.iter().filter(|_| !documents.is_empty()) {
        let status = context.workspace.status(case, &context.principal).await?;
        known.extend(status.documents.into_iter().map(|document| document.doc_id));
    }
    match documents.iter().find(|wanted| !known.contains(wanted)) {
        None => Ok(()),
        Some(missing) => Err(BadInput(
            format!("there is no document {missing:?} that you may see"),
            Some("`factum status CASE` lists the documents".to_owned()),
        )
        .into()),
    }
}

/// One question and its answer. A conversation in which nothing was answered is not kept.
async fn one(
    conversation: &mut Conversation,
    question: &str,
    desk: &Desk,
    context: &Context<'_>,
) -> Result<u8> {
    let asked = desk.ask(conversation, Some(question)).await;
    let empty = conversation.history().clock() == 0;
    if asked.is_err() && empty {
        let _ = context
            .workspace
            .delete_conversation(&context.principal, conversation.id())
            .await;
    }
    let answer = asked?;
    context
        .output
        .result("factum/answer/1", &answer, || answer_text::answer(&answer))?;
    Ok(0)
}

pub(super) async fn conversation(
    command: ConversationCommand,
    context: &Context<'_>,
) -> Result<u8> {
    let (workspace, principal) = (&context.workspace, &context.principal);
    match command {
        ConversationCommand::List => {
            let all = workspace.conversations(principal).await?;
            let list: Vec<Value> = all
                .iter()
                .map(|one| {
                    json!({
                        "conversation_id": one.conversation_id,
                        "title": one.title,
                        "messages": one.messages,
                        "created_at": moment::rfc_3339(one.created_at),
                        "changed_at": moment::rfc_3339(one.changed_at),
                    })
                })
                .collect();
            context.output.result(
                "factum/conversations/1",
                &json!({"conversations": list}),
                || answer_text::conversations(&all),
            )?;
        }
        ConversationCommand::Show { id } => {
            let conversation = Conversation::open(workspace, principal, &id)
                .await
                .map_err(flat)?;
            show(&conversation, context).await?;
        }
        ConversationCommand::Delete { id } => {
            workspace.delete_conversation(principal, &id).await?;
            context.output.result(
                "factum/conversation-deleted/1",
                &json!({"conversation_id": id}),
                || format!("{} is deleted.\n", clean(&id)),
            )?;
        }
        ConversationCommand::Resume {
            id,
            question,
            generator,
            finding,
            cost,
        } => {
            let mut conversation = Conversation::open(workspace, principal, &id)
                .await
                .map_err(flat)?;
            workspace
                .check_may_see(principal, conversation.cases())
                .await?;
            let before = conversation.asked_of().map(str::to_owned);
            let generator = generator.or(before);
            let generator = generator.as_deref().unwrap_or("extractive");
            let desk = Desk::new(generator, &finding, &cost).await?;
            return resume(&mut conversation, question.as_deref(), &desk, context).await;
        }
    }
    Ok(0)
}

async fn resume(
    conversation: &mut Conversation,
    question: Option<&str>,
    desk: &Desk,
    context: &Context<'_>,
) -> Result<u8> {
    let mut finished = None;
    if let Some(pending) = conversation.pending() {
        warn(&format!("finishing: {}", clean(pending)));
        finished = Some(desk.ask(conversation, None).await?);
    }
    match (question, finished) {
        (Some(question), finished) => {
            if let Some(answer) = finished.filter(|_| !context.output.is_json()) {
                context.output.note(&answer_text::answer(&answer));
            }
            one(conversation, question, desk, context).await
        }
        (None, Some(answer)) => {
            context
                .output
                .result("factum/answer/1", &answer, || answer_text::answer(&answer))?;
            Ok(0)
        }
        (None, None) => {
            let never = |title: String| Beginning {
                cases: Vec::new(),
                documents: Vec::new(),
                compact: true,
                title,
            };
            talk(Some(conversation), &never, desk, context).await
        }
    }
}

async fn show(conversation: &Conversation, context: &Context<'_>) -> Result<()> {
    let exchanges = conversation.exchanges().await.map_err(flat)?;
    let (created_at, changed_at) = conversation.times();
    let value = json!({
        "conversation_id": conversation.id(),
        "title": conversation.title(),
        "cases": conversation.cases(),
        "created_at": moment::rfc_3339(created_at),
        "changed_at": moment::rfc_3339(changed_at),
        "documents": conversation.documents(),
        "pending": conversation.pending(),
        "violations": conversation.violations(),
        "exchanges": exchanges,
    });
    context.output.result("factum/conversation/1", &value, || {
        answer_text::conversation(conversation, &exchanges)
    })
}

/// Where questions come from: a line editor where a person types, else the lines of stdin.
enum Questions {
    Typed(Box<rustyline::DefaultEditor>),
    Piped(std::io::Split<std::io::StdinLock<'static>>, usize),
}

impl Questions {
    fn new() -> Result<Self> {
        if std::io::stdin().is_terminal() {
            Ok(Self::Typed(Box::new(rustyline::DefaultEditor::new()?)))
        } else {
            Ok(Self::Piped(std::io::stdin().lock().split(b'\n'), 0))
        }
    }

    /// The next one, or what is wrong with it; none at the end.
    fn next(&mut self) -> Result<Option<Result<String, BadInput>>> {
        use rustyline::error::ReadlineError;
        match self {
            Self::Piped(lines, number) => {
                *number += 1;
                let line = lines.next().transpose()?;
                Ok(line.map(|bytes| {
                    String::from_utf8(bytes).map_err(|_| not_text(&format!("line {number}")))
                }))
            }
            Self::Typed(editor) => match editor.readline("? ") {
                Ok(line) => {
                    let _ = editor.add_history_entry(line.as_str());
                    Ok(Some(Ok(line)))
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
                Err(ReadlineError::Io(error))
                    if error.kind() == std::io::ErrorKind::InvalidData =>
                {
                    Ok(Some(Err(not_text("what was typed"))))
                }
                Err(error) => Err(error.into()),
            },
        }
    }
}

fn not_text(what: &str) -> BadInput {
    let hint = "questions are text in UTF-8; the other lines are asked".to_owned();
    BadInput(format!("{what} is not UTF-8"), Some(hint))
}

/// A conversation, question by question. A question that fails is told and left behind.
async fn talk(
    going_on: Option<&mut Conversation>,
    first: &dyn Fn(String) -> Beginning,
    desk: &Desk,
    context: &Context<'_>,
) -> Result<u8> {
    let mut questions = Questions::new()?;
    if matches!(questions, Questions::Typed(_)) {
        warn("Ask, or leave with an empty line or Ctrl-D.");
    }
    let mut begun: Option<Conversation> = None;
    let mut going_on = going_on;
    let mut code = 0;
    while let Some(line) = tokio::task::block_in_place(|| questions.next())? {
        let line = match line {
            Ok(line) => line,
            Err(bad) => {
                code = failure::report(&bad.into(), &crate::output::Output::new(false));
                continue;
            }
        };
        let question = line.trim();
        if question.is_empty() {
            if matches!(questions, Questions::Typed(_)) {
                break;
            }
            continue;
        }
        if going_on.is_none() && begun.is_none() {
            let beginning = first(question.to_owned());
            let new = Conversation::begin(&context.workspace, &context.principal, beginning).await;
            begun = Some(new.map_err(flat)?);
        }
        let Some(conversation) = going_on.as_deref_mut().or(begun.as_mut()) else {
            break;
        };
        match desk.ask(conversation, Some(question)).await {
            Ok(answer) if !context.output.is_json() => {
                context.output.note(&answer_text::answer(&answer));
            }
            Ok(_) => {}
            Err(error) if matches!(error.downcast_ref(), Some(AskError::Interrupted)) => {
                return Err(error);
            }
            Err(error) => {
                // With JSON, the document comes at the end.
                code = failure::report(&error, &crate::output::Output::new(false));
            }
        }
    }
    if context.output.is_json() {
        let Some(conversation) = going_on.as_deref().or(begun.as_ref()) else {
            let message = "no question was asked; give one, or one a line on standard input";
            return Err(Usage(message.to_owned()).into());
        };
        show(conversation, context).await?;
    }
    Ok(code)
}
