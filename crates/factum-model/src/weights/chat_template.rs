//! The chat template of a Safetensors folder.

use std::path::Path;

use serde::Deserialize;

use super::safetensors_dir::read_bounded;

/// The file that newer models keep their template in.
pub(crate) const TEMPLATE_FILE: &str = "chat_template.jinja";
/// The longest template or configuration that is read.
pub(crate) const MAX_TEXT_BYTES: u64 = 4 << 20;

/// As `tokenizer_config.json` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum TemplateField {
    /// The template.
    One(String),
    /// Several, by name.
    Named(Vec<NamedTemplate>),
}

/// A template with a name.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NamedTemplate {
    name: String,
    template: String,
}

/// The template of a folder: its own file, else the field; of several, the one called `default`.
pub(crate) fn chat_template(dir: &Path, field: Option<TemplateField>) -> Option<String> {
    let file = dir.join(TEMPLATE_FILE);
    if file.exists() {
        let bytes = read_bounded(&file, MAX_TEXT_BYTES).ok()?;
        return String::from_utf8(bytes).ok();
    }
    match field? {
        TemplateField::One(template) => Some(template),
        TemplateField::Named(named) => named
            .into_iter()
            .find(|one| one.name == "default")
            .map(|one| one.template),
    }
}
