//! What turns documents into claims, as it enters every key: the generator and all of the profile that
//! can change its answer.

use std::sync::Arc;

use factum_base::PrincipalId;
use factum_casefile::Profile;
use factum_casefile::profile::{ModelSettings, Reductions};
use factum_casefile::support::SUPPORT_VERSION;
use factum_graph::segments::SEGMENTATION;
use factum_graph::{SpecContext, SpecPart};
use factum_model::ModelIdentity;
use factum_model::constraint::CONSTRAINT_VERSION;
use serde_json::{Value, json};

use crate::answer::ANSWER_VERSION;
use crate::error::EngineError;
use crate::extract::EXTRACTION_VERSION;
use crate::prompting::{CATALOGUE_VERSION, PROMPT_VERSION, Reader, instructions};

/// What makes claims.
#[derive(Debug, Clone)]
pub enum Generator {
    /// Rules and salient sentences; no model.
    Extractive,
    /// A language model.
    Model(Arc<Model>),
}

/// A language model as a generator of claims.
#[derive(Debug)]
pub struct Model {
    /// The generator's name, as heads and runs keep it: `local:smollm2-135m-instruct`, say.
    pub name: String,
    /// All of the model that can change an answer.
    pub identity: ModelIdentity,
    /// The model itself; serving and planning need none.
    pub engine: Option<Arc<dyn factum_model::Generator>>,
}

impl Generator {
    /// The name of the generator that needs no model.
    pub const EXTRACTIVE: &str = "extractive";

    /// A model ready for use.
    pub fn model(name: &str, engine: Arc<dyn factum_model::Generator>) -> Self {
        Self::Model(Arc::new(Model {
            name: name.to_owned(),
            identity: engine.identity().clone(),
            engine: Some(engine),
        }))
    }

    /// Its name, as heads and runs keep it.
    pub fn name(&self) -> &str {
        match self {
            Self::Extractive => Self::EXTRACTIVE,
            Self::Model(model) => &model.name,
        }
    }

    pub(crate) fn identity(&self) -> Value {
        match self {
            Self::Extractive => json!({"kind": "extractive", "version": EXTRACTION_VERSION}),
            Self::Model(model) => json!({"kind": "model", "model": model.identity}),
        }
    }
}

/// Where the identities of models come from, without loading one.
pub trait ModelShelf: Send + Sync {
    /// The identity of the model that a generator's name stands for.
    ///
    /// # Errors
    /// There is no such model here; the message says why.
    fn identity(&self, name: &str) -> Result<ModelIdentity, String>;
}

/// A shelf without models.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl ModelShelf for NoModels {
    fn identity(&self, _: &str) -> Result<ModelIdentity, String> {
        Err("no models are at hand here".to_owned())
    }
}

/// The spec context of a principal's tree under a profile and generator.
///
/// # Errors
/// The profile says nothing about models, or can't be written as JSON.
pub fn spec_context(
    principal: &PrincipalId,
    profile: &Profile,
    generator: &Generator,
) -> Result<SpecContext, EngineError> {
    let (leaf, reduction) = match generator {
        Generator::Extractive => (extracted_leaf(profile), extracted_reduction(profile)),
        Generator::Model(_) => {
            let settings = model_settings(profile)?;
            let identity = generator.identity();
            let reduction = match settings.reductions {
                Reductions::Ask => asked_reduction(profile, settings, &identity),
                // Folding asks no model: what the model can change is in the children's keys.
                Reductions::Fold => extracted_reduction(profile),
            };
            (asked_leaf(profile, settings, &identity), reduction)
        }
    };
    Ok(SpecContext {
        principal: principal.clone(),
        leaf: SpecPart::new(&leaf)?,
        reduction: SpecPart::new(&reduction)?,
    })
}

/// What a profile says about models.
pub(crate) fn model_settings(profile: &Profile) -> Result<&ModelSettings, EngineError> {
    profile
        .model
        .as_ref()
        .ok_or_else(|| EngineError::NoModelSettings(profile.name.clone()))
}

fn support(profile: &Profile) -> Value {
    json!({"policy": profile.support.policy, "version": SUPPORT_VERSION})
}

fn segmentation(profile: &Profile) -> Value {
    json!({"method": SEGMENTATION, "rule": profile.segments})
}

fn extracted_leaf(profile: &Profile) -> Value {
    let extraction = &profile.extraction;
    json!({
        "generator": Generator::Extractive.identity(),
        "profile": {
            "claim": profile.claim,
            "extraction": {
                "heading": extraction.heading,
                "leaf_claims": extraction.leaf_claims,
                "salient": extraction.salient,
                "sentence": extraction.sentence,
            },
            "name": profile.name,
            "rules": profile.rules,
        },
        "segmentation": segmentation(profile),
        "support": support(profile),
    })
}

fn extracted_reduction(profile: &Profile) -> Value {
    let extraction = &profile.extraction;
    json!({
        "children": profile.tree.children,
        "generator": Generator::Extractive.identity(),
        "profile": {
            "claim": profile.claim,
            "extraction": {"node_claims": extraction.node_claims, "sentence": extraction.sentence},
            "name": profile.name,
            // A folded claim is checked again by the rules.
            "rules": profile.rules,
        },
        "support": support(profile),
    })
}

/// What a claim is and how it is checked, for a model's claims.
fn asked_profile(profile: &Profile) -> Value {
    let extraction = &profile.extraction;
    json!({
        "claim": profile.claim,
        "extraction": {"salient": extraction.salient, "sentence": extraction.sentence},
        "name": profile.name,
        "rules": profile.rules,
    })
}

fn asked_leaf(profile: &Profile, settings: &ModelSettings, identity: &Value) -> Value {
    json!({
        "answer": ANSWER_VERSION,
        "catalogue": {"unit": settings.evidence, "version": CATALOGUE_VERSION},
        "decoding": {"mode": settings.decoding, "version": CONSTRAINT_VERSION},
        "generator": identity,
        "input_tokens": settings.leaf_input_tokens,
        "new_tokens": settings.new_tokens,
        "profile": asked_profile(profile),
        "prompt": {"text": instructions(profile, settings, Reader::Leaf), "version": PROMPT_VERSION},
        "segmentation": segmentation(profile),
        "support": support(profile),
        "when_empty": settings.when_empty,
    })
}

fn asked_reduction(profile: &Profile, settings: &ModelSettings, identity: &Value) -> Value {
    json!({
        "answer": ANSWER_VERSION,
        "children": profile.tree.children,
        "decoding": {"mode": settings.decoding, "version": CONSTRAINT_VERSION},
        "generator": identity,
        "input_claims": settings.input_claims,
        "input_tokens": settings.reduction_input_tokens,
        "new_tokens": settings.new_tokens,
        "profile": asked_profile(profile),
        "prompt": {
            "text": instructions(profile, settings, Reader::Reduction),
            "version": PROMPT_VERSION,
        },
        "support": support(profile),
        "when_empty": settings.when_empty,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // If this changes, every key of every user changes: the versions in it must say why.
    #[test]
    fn golden_contexts() {
        let principal = PrincipalId::new("local").unwrap();
        let found = ["narrative", "facts", "session", "controlled"].map(|name| {
            let profile = Profile::built_in(name).unwrap();
            let context = spec_context(&principal, &profile, &Generator::Extractive).unwrap();
            format!("{name} {}", context.digest())
        });
        let golden = [
            "narrative 1637d3b29299a38e38aa2f48310ebe7cd562f91d7cc5999118c84d2c0c8566a8",
            "facts 83b535f3494c9a3b222172cdba5253c0284456c1e2692c4f44ab712702017b18",
            "session fd70fccd37a4b8aac2cd681751dafe00caf1325a27eddc372284bf83fdbf354e",
            "controlled ac2818a51e327be98a19a22b18f966772d216df751c15be6a004f3d22a937533",
        ];
        assert_eq!(found, golden);
    }

    // The prompts are in it whole.
    #[test]
    fn golden_contexts_of_a_model() {
        let principal = PrincipalId::new("local").unwrap();
        let generator = Generator::Model(Arc::new(Model {
            name: "canned:x".to_owned(),
            identity: ModelIdentity::new(json!({"kind": "canned", "sha256": "00"})),
            engine: None,
        }));
        let found = ["narrative", "facts", "session", "controlled"].map(|name| {
            let profile = Profile::built_in(name).unwrap();
            let context = spec_context(&principal, &profile, &generator).unwrap();
            format!("{name} {}", context.digest())
        });
        let golden = [
            "narrative 4cebb09e892d5611ef5633c2b73e8438bac5a9797429d45e8db8fc9cac354bea",
            "facts 3503bb7950ad3b0ac1756fd90661a68564a9fbde8e4a73f39a4c74ff3f7a1809",
            "session 48b8692697b72ea191fa08fd1e2906d79842dee3638fe7203743ba42093b4fc6",
            "controlled 2af1319e345ced4650bf642828d193c73364a8f971ce648a5a3af633f615ea8c",
        ];
        assert_eq!(found, golden);
    }

    #[test]
    fn what_can_change_a_model_s_answer_changes_the_context() {
        let principal = PrincipalId::new("local").unwrap();
        let context = |text: &str, identity: &str| {
            let profile =
                Profile::load("mine", &|n| (n == "mine").then(|| text.to_owned())).unwrap();
            let generator = Generator::Model(Arc::new(Model {
                name: "canned:x".to_owned(),
                identity: ModelIdentity::new(json!({"kind": "canned", "sha256": identity})),
                engine: None,
            }));
            let found = spec_context(&principal, &profile, &generator).unwrap();
            (found.leaf.digest(), found.reduction.digest())
        };
        let base = "extends = \"narrative\"\n";
        let before = context(base, "00");
        let both = context(base, "01");
        assert!(both.0 != before.0 && both.1 != before.1, "the model");
        for (change, leaf, reduction) in [
            ("leaf_prompt = \"Read.\"", true, false),
            ("reduction_prompt = \"Fold.\"", false, true),
            ("leaf_input_tokens = 100", true, false),
            ("reduction_input_tokens = 100", false, true),
            ("new_tokens = 100", true, true),
            ("decoding = \"free\"", true, true),
            ("evidence = \"lines\"", true, false),
            ("input_claims = 3", false, true),
            ("when_empty = \"ask\"", true, true),
            ("reductions = \"fold\"", false, true),
            ("reuse = \"nodes\"", false, false),
        ] {
            let after = context(&format!("{base}[model]\n{change}\n"), "00");
            assert_eq!(
                (after.0 != before.0, after.1 != before.1),
                (leaf, reduction),
                "{change}"
            );
        }
    }

    #[test]
    fn every_part_of_a_profile_that_changes_answers_changes_the_context() {
        let principal = PrincipalId::new("local").unwrap();
        let digest = |text: &str| {
            let profile =
                Profile::load("mine", &|n| (n == "mine").then(|| text.to_owned())).unwrap();
            spec_context(&principal, &profile, &Generator::Extractive)
                .unwrap()
                .digest()
        };
        let base = "extends = \"facts\"\n";
        for change in [
            "[extraction]\nleaf_claims = 5",
            "[extraction]\nnode_claims = 5",
            "[extraction]\nsalient = \"never\"",
            "[segments]\nmax_chars = 9000",
            "[tree]\nchildren = \"key-order\"",
            "[support]\npolicy = \"flag\"",
            "[claim]\nmax_evidence = 2",
            "[[rules]]\nid = \"label-line\"\npattern = '(?<value>x)'",
        ] {
            assert_ne!(digest(&format!("{base}{change}")), digest(base), "{change}");
        }
    }
}
