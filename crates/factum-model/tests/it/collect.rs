//! A sink that keeps what it is handed, and the requests that tests ask.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use factum_model::{
    Constraint, Control, Generation, GenerationRequest, GenerationSink, Generator, Message,
    ModelError, Role,
};

/// What came of each request, in its place.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    outcomes: Mutex<Vec<(usize, Result<Generation, ModelError>)>>,
    pub(crate) tokens: AtomicU64,
}

impl GenerationSink for Collect {
    fn finished(&self, request: usize, outcome: Result<Generation, ModelError>) {
        self.outcomes.lock().unwrap().push((request, outcome));
    }

    fn tokens(&self, new: u64) {
        self.tokens.fetch_add(new, Ordering::Relaxed);
    }
}

/// Asks, and holds the generator to handing over each request exactly once.
pub(crate) async fn ask_all(
    generator: &dyn Generator,
    requests: &[GenerationRequest],
    control: &Control,
) -> Vec<Result<Generation, ModelError>> {
    let sink = Collect::default();
    generator.generate(requests, control, &sink).await;
    let mut outcomes = sink.outcomes.into_inner().unwrap();
    outcomes.sort_by_key(|(place, _)| *place);
    let places: Vec<usize> = outcomes.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, (0..requests.len()).collect::<Vec<_>>());
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Asks one thing.
pub(crate) async fn ask(
    generator: &dyn Generator,
    request: GenerationRequest,
) -> Result<Generation, ModelError> {
    ask_all(generator, &[request], &Control::default())
        .await
        .remove(0)
}

/// A request that is held to nothing.
pub(crate) fn request(text: &str) -> GenerationRequest {
    GenerationRequest {
        messages: vec![
            Message::new(Role::System, "Summarise."),
            Message::new(Role::User, text),
        ],
        constraint: Constraint::None,
        input_budget: 4096,
        max_new_tokens: 64,
    }
}
