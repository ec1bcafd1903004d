//! What turns documents into claims, as it enters every key: the generator and all of the profile that
//! can change its answer.

use factum_base::PrincipalId;
use factum_casefile::Profile;
use factum_casefile::support::SUPPORT_VERSION;
use factum_graph::segments::SEGMENTATION;
use factum_graph::{SpecContext, SpecPart};
use serde_json::{Value, json};

use crate::error::EngineError;
use crate::extract::EXTRACTION_VERSION;

/// A generator: what makes claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// Rules and salient sentences; no model.
    Extractive,
}

impl Generator {
    /// Reads a generator's name.
    ///
    /// # Errors
    /// This build has none of that name.
    pub fn parse(name: &str) -> Result<Self, EngineError> {
        match name {
            "extractive" => Ok(Self::Extractive),
            other => Err(EngineError::UnknownGenerator(other.to_owned())),
        }
    }

    /// Its name, as heads and runs keep it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extractive => "extractive",
        }
    }

    fn identity(self) -> Value {
        match self {
            Self::Extractive => json!({"kind": "extractive", "version": EXTRACTION_VERSION}),
        }
    }
}

/// The spec context of a principal's tree under a profile and generator.
///
/// # Errors
/// The profile can't be written as JSON.
pub fn spec_context(
    principal: &PrincipalId,
    profile: &Profile,
    generator: Generator,
) -> Result<SpecContext, EngineError> {
    let support = json!({"policy": profile.support.policy, "version": SUPPORT_VERSION});
    let extraction = &profile.extraction;
    let leaf = json!({
        "generator": generator.identity(),
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
        "segmentation": {"method": SEGMENTATION, "rule": profile.segments},
        "support": support,
    });
    let reduction = json!({
        "children": profile.tree.children,
        "generator": generator.identity(),
        "profile": {
            "claim": profile.claim,
            "extraction": {"node_claims": extraction.node_claims, "sentence": extraction.sentence},
            "name": profile.name,
            // A folded claim is checked again by the rules.
            "rules": profile.rules,
        },
        "support": support,
    });
    Ok(SpecContext {
        principal: principal.clone(),
        leaf: SpecPart::new(&leaf)?,
        reduction: SpecPart::new(&reduction)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // If this changes, every key of every user changes: the versions in it must say why.
    #[test]
    fn golden_contexts() {
        let principal = PrincipalId::new("local").unwrap();
        for (name, digest) in [
            (
                "narrative",
                "631b934ad3f64a5132a53f0c0ffb2d0fcf91d68688b4363a2b2a541198514971",
            ),
            (
                "facts",
                "aa8d7d0ae26c5b65415cf349c7510ec5b684392163f75c159321955b7c1fa7f7",
            ),
            (
                "session",
                "77c8ad648fcc1f90f751cc4dc2fedcb46253d59b466ef0a0fb7cf2bafabefd26",
            ),
            (
                "controlled",
                "a5ed38065dfe4a2e86a456a0d5aed30d6a4026dfbce5c164c80a0eba74c1b8d1",
            ),
        ] {
            let profile = Profile::built_in(name).unwrap();
            let context = spec_context(&principal, &profile, Generator::Extractive).unwrap();
            assert_eq!(context.digest().to_hex(), digest, "{name}");
        }
    }

    #[test]
    fn every_part_of_a_profile_that_changes_answers_changes_the_context() {
        let principal = PrincipalId::new("local").unwrap();
        let digest = |text: &str| {
            let profile =
                Profile::load("mine", &|n| (n == "mine").then(|| text.to_owned())).unwrap();
            spec_context(&principal, &profile, Generator::Extractive)
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
