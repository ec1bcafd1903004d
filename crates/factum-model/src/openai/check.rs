//! Finding out, by real calls, what a server can do. Done once by a person who configures it; a build never
//! probes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::retry::Terms;
use super::session::Session;
use super::{ConstraintMode, LimitField, OpenAiError, OpenAiOptions};
use crate::constraint::Constraint;
use crate::error::ModelError;
use crate::generation::Generation;
use crate::generator::{GenerationSink, TokenCount};
use crate::request::{GenerationRequest, Message, Role};

/// What was found out about a server and a model on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckReport {
    /// The server.
    pub url: String,
    /// The model.
    pub model: String,
    /// The server answers, and lists the model.
    pub listed: Finding,
    /// Each way to send a constraint, best first.
    pub modes: Vec<ModeFinding>,
    /// The first of them that works.
    pub recommended_mode: Option<ConstraintMode>,
    /// What the server calls the most new tokens.
    pub limit_field: LimitField,
    /// It reports how many tokens were used; none where there was no answer.
    pub reports_usage: Option<bool>,
    /// What it says of its build.
    pub system_fingerprint: Option<String>,
    /// llama.cpp's routes for counting tokens.
    pub counts_as_llama_cpp: Finding,
    /// vLLM's route for counting tokens.
    pub counts_as_vllm: Finding,
    /// The best way to count tokens: `llama_cpp`, `vllm` or `bound`.
    pub recommended_counting: String,
}

/// One way to send a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeFinding {
    /// Which.
    pub mode: ConstraintMode,
    /// Whether answers are held to it.
    pub finding: Finding,
}

/// What came of one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// It works.
    Works,
    /// The server answered, but not so that it could be used.
    Differs {
        /// What was different.
        message: String,
    },
    /// There was no answer.
    Failed {
        /// The kind of failure: `unreachable`, `certificate`, `timeout`, `status`, `bad_reply`, ...
        kind: String,
        /// What happened.
        message: String,
    },
}

impl Finding {
    /// It works.
    pub const fn works(&self) -> bool {
        matches!(self, Self::Works)
    }

    fn failed(error: &ModelError) -> Self {
        Self::Failed {
            kind: kind(error).to_owned(),
            message: error.to_string(),
        }
    }
}

const fn kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::Unreachable { .. } => "unreachable",
        ModelError::Certificate(_) => "certificate",
        ModelError::Timeout { .. } => "timeout",
        ModelError::Status { .. } => "status",
        ModelError::BadReply { .. } => "bad_reply",
        ModelError::TooLarge { .. } => "too_large",
        ModelError::Template(_) => "template",
        _ => "other",
    }
}

struct Nobody;

impl GenerationSink for Nobody {
    fn finished(&self, _request: usize, _outcome: Result<Generation, ModelError>) {}
}

// No model writes this word of its own accord, so an answer that holds it was held to the schema.
const WORD: &str = "qx7-heron";
const ANSWER_TOKENS: u32 = 64;
const LONGEST_TRIAL: Duration = Duration::from_mins(2);
const MODES: [ConstraintMode; 3] = [
    ConstraintMode::JsonSchema,
    ConstraintMode::JsonObject,
    ConstraintMode::Plain,
];

/// Asks the server all that can be asked: its models, an answer in each constraint mode, a count of tokens
/// by each route. The mode and counting of `options` are not used. A server that is out of reach is tried once.
///
/// # Errors
/// Options that can't be used. What the server does wrong is a finding.
pub async fn check(options: &OpenAiOptions) -> Result<CheckReport, OpenAiError> {
    let options = OpenAiOptions {
        tokens: super::TokenCounting::Bound,
        deadline: options.deadline.min(LONGEST_TRIAL),
        ..options.clone()
    };
    options.read()?;
    let mut session = Session::new(&options, None)?;
    let time = || Terms::starting_now(options.deadline);
    let mut report = CheckReport::new(&options);
    let models = session.models(&time()).await;
    report.listed = listed(&models, &options.model);
    if let Some(error) = models.err().filter(is_out_of_reach) {
        report.fill(&Finding::failed(&error));
        return Ok(report);
    }
    report.counts_as_llama_cpp =
        counts(&session.count_by_llama_cpp(&prompt("Hello."), &time()).await);
    report.counts_as_vllm = counts(&session.count_by_vllm(&prompt("Hello."), &time()).await);
    if report.counts_as_llama_cpp.works() {
        "llama_cpp".clone_into(&mut report.recommended_counting);
    } else if report.counts_as_vllm.works() {
        "vllm".clone_into(&mut report.recommended_counting);
    }
    for mode in MODES {
        let mut answer = try_mode(&session, mode, &time()).await;
        if answer.as_ref().is_err_and(wants_other_limit) {
            report.limit_field = LimitField::MaxCompletionTokens;
            session = session.with_limit(report.limit_field);
            answer = try_mode(&session, mode, &time()).await;
        }
        report.take_answer(mode, answer);
    }
    Ok(report)
}

// No other route can be better.
const fn is_out_of_reach(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Unreachable { .. } | ModelError::Certificate(_) | ModelError::Timeout { .. }
    )
}

// A server that refuses a field says which one it wants instead.
fn wants_other_limit(error: &ModelError) -> bool {
    let wanted = LimitField::MaxCompletionTokens.word();
    matches!(error, ModelError::Status { status: 400 | 422, message, .. } if message.contains(wanted))
}

impl CheckReport {
    fn new(options: &OpenAiOptions) -> Self {
        let untried = Finding::Differs {
            message: "not tried".to_owned(),
        };
        Self {
            url: options.url.to_string(),
            model: options.model.clone(),
            listed: untried.clone(),
            modes: Vec::new(),
            recommended_mode: None,
            limit_field: options.limit,
            reports_usage: None,
            system_fingerprint: None,
            counts_as_llama_cpp: untried.clone(),
            counts_as_vllm: untried,
            recommended_counting: "bound".to_owned(),
        }
    }

    fn fill(&mut self, finding: &Finding) {
        self.counts_as_llama_cpp = finding.clone();
        self.counts_as_vllm = finding.clone();
        self.modes = MODES
            .map(|mode| ModeFinding {
                mode,
                finding: finding.clone(),
            })
            .to_vec();
    }

    fn take_answer(&mut self, mode: ConstraintMode, answer: Result<Generation, ModelError>) {
        let finding = match &answer {
            Err(error) => Finding::failed(error),
            Ok(answer) => conforms(mode, &answer.text),
        };
        if let Ok(answer) = answer {
            let counted = !answer.tokens_bounded;
            self.reports_usage = Some(self.reports_usage.unwrap_or(true) && counted);
            self.system_fingerprint = answer.system_fingerprint.or(self.system_fingerprint.take());
        }
        if finding.works() && self.recommended_mode.is_none() {
            self.recommended_mode = Some(mode);
        }
        self.modes.push(ModeFinding { mode, finding });
    }
}

fn prompt(text: &str) -> Vec<Message> {
    vec![Message::new(Role::User, text)]
}

fn listed(models: &Result<Vec<String>, ModelError>, model: &str) -> Finding {
    match models {
        Err(error) => Finding::failed(error),
        Ok(names) if names.iter().any(|name| name == model) => Finding::Works,
        Ok(names) => {
            let some: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
            let message = format!(
                "the server does not list the model; it lists {} ({})",
                names.len(),
                super::stream::shown(&some.join(", "))
            );
            Finding::Differs { message }
        }
    }
}

fn counts(count: &Result<u32, ModelError>) -> Finding {
    match count {
        Err(error) => Finding::failed(error),
        // One word in any template has some tokens, and not hundreds.
        Ok(1..=500) => Finding::Works,
        Ok(tokens) => Finding::Differs {
            message: format!("one word is said to have {tokens} tokens"),
        },
    }
}

async fn try_mode(
    session: &Session,
    mode: ConstraintMode,
    terms: &Terms<'_>,
) -> Result<Generation, ModelError> {
    let messages = prompt("Write one short sentence about the sea, as JSON.");
    let constraint = match mode {
        ConstraintMode::Plain => Constraint::None,
        ConstraintMode::JsonSchema | ConstraintMode::JsonObject => Constraint::JsonSchema(json!({
            "type": "object",
            "properties": {"word": {"type": "string", "enum": [WORD]}},
            "required": ["word"],
            "additionalProperties": false,
        })),
    };
    let request = GenerationRequest {
        messages,
        constraint,
        input_budget: u32::MAX,
        max_new_tokens: ANSWER_TOKENS,
    };
    let counted = TokenCount {
        tokens: 0,
        exact: false,
    };
    session.chat(mode, &request, counted, terms, &Nobody).await
}

fn conforms(mode: ConstraintMode, text: &str) -> Finding {
    let parsed = serde_json::from_str::<Value>(text.trim());
    let good = match mode {
        ConstraintMode::JsonSchema => parsed.is_ok_and(|value| value == json!({"word": WORD})),
        ConstraintMode::JsonObject => parsed.is_ok_and(|value| value.is_object()),
        ConstraintMode::Plain => true,
    };
    if good {
        return Finding::Works;
    }
    Finding::Differs {
        message: format!("the answer is {:?}", super::stream::shown(text)),
    }
}
