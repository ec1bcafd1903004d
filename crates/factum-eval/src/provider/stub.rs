//! The fixture's own output, with known scores: it tests the scorers and the fixture.

use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::provider::{Provider, ProviderError};
use crate::summary::Summary;

/// The fixture's own output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stub;

impl Provider for Stub {
    fn name(&self) -> &'static str {
        "stub"
    }

    fn identity(&self) -> Value {
        json!({"kind": "stub"})
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn summarise(&self, fixture: &Fixture, _: u32) -> Result<Summary, ProviderError> {
        fixture.stub.clone().ok_or(ProviderError::NoStub)
    }
}
