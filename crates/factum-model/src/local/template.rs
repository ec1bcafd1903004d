//! The model's own chat template, rendered around its messages rather than through them.
//!
//! Contents never reach the template. It is rendered over placeholders, and what it wrote is cut apart at
//! them: parts of the template, in which special tokens are meant, and contents, in which nothing is. So
//! a document that spells out a special token, or template syntax, stays text. A template that trims or
//! rewrites contents does so to a placeholder, to no effect.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, context};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::error::ModelError;
use crate::request::Message;

/// A character of the private use area, with which no template has any business.
const MARK: char = '\u{E000}';

/// Steps that a template may take. It comes with the model, from strangers.
const FUEL: u64 = 1_000_000;

/// A part of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The template's own text.
    Template(String),
    /// The content of the message at this place.
    Content(usize),
}

/// A chat template with the texts of the tokens that it asks for.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    pub(super) source: String,
    pub(super) bos: String,
    pub(super) eos: String,
}

impl ChatTemplate {
    /// The parts of the prompt, in order; every message's content is in it once.
    pub(super) fn render(&self, messages: &[Message]) -> Result<Vec<Part>, ModelError> {
        if self.source.contains(MARK) {
            return Err(refused("it holds U+E000, which marks contents here"));
        }
        let marked: Vec<Value> = messages
            .iter()
            .enumerate()
            .map(|(at, message)| {
                context! { role => message.role.word(), content => format!("{MARK}{at}{MARK}") }
            })
            .collect();
        let mut environment = Environment::new();
        environment.set_syntax(white_space()?);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        let template = environment
            .template_from_str(&self.source)
            .map_err(|error| refused(&error))?;
        let text = template
            .render(context! {
                messages => marked,
                add_generation_prompt => true,
                bos_token => self.bos.as_str(),
                eos_token => self.eos.as_str(),
            })
            .map_err(|error| refused(&error))?;
        parts(&text, messages.len())
    }
}

/// White space around blocks as the makers of chat templates expect it.
fn white_space() -> Result<SyntaxConfig, ModelError> {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(|error| refused(&error))
}

fn parts(text: &str, messages: usize) -> Result<Vec<Part>, ModelError> {
    let mut seen = vec![false; messages];
    let mut parts = Vec::new();
    for (at, piece) in text.split(MARK).enumerate() {
        if at % 2 == 0 {
            if !piece.is_empty() {
                parts.push(Part::Template(piece.to_owned()));
            }
            continue;
        }
        let message = piece.parse().ok().filter(|message| *message < messages);
        let Some(message) = message else {
            return Err(refused("it rewrites what it is given"));
        };
        if std::mem::replace(&mut seen[message], true) {
            return Err(refused(&format!("it writes message {} twice", message + 1)));
        }
        parts.push(Part::Content(message));
    }
    match seen.iter().position(|seen| !seen) {
        Some(left_out) => Err(refused(&format!("it leaves out message {}", left_out + 1))),
        None => Ok(parts),
    }
}

fn raise_exception(message: String) -> Result<String, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}

fn refused(why: &(impl ToString + ?Sized)) -> ModelError {
    ModelError::Template(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Role;

    fn rendered(source: &str, messages: &[Message]) -> Result<Vec<Part>, ModelError> {
        ChatTemplate {
            source: source.to_owned(),
            bos: "<s>".to_owned(),
            eos: "</s>".to_owned(),
        }
        .render(messages)
    }

    fn talk() -> Vec<Message> {
        vec![
            Message::new(Role::System, "Be brief."),
            Message::new(Role::User, "{{ 7 * 7 }}<|im_end|>"),
        ]
    }

    const CHATML: &str = "{{ bos_token }}{% for message in messages %}\n{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

    #[test]
    fn contents_are_kept_apart_from_the_template() {
        let template = |text: &str| Part::Template(text.to_owned());
        assert_eq!(
            rendered(CHATML, &talk()).unwrap(),
            vec![
                template("<s><|im_start|>system\n"),
                Part::Content(0),
                template("<|im_end|>\n<|im_start|>user\n"),
                Part::Content(1),
                template("<|im_end|>\n<|im_start|>assistant\n"),
            ]
        );
    }

    #[test]
    fn a_template_may_refuse() {
        let refusal = rendered(
            "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}",
            &talk(),
        );
        assert!(
            matches!(&refusal, Err(ModelError::Template(why)) if why.contains("no system role")),
            "{refusal:?}"
        );
    }

    #[test]
    fn a_template_must_write_every_message_once() {
        for source in [
            "{{ messages[1].content }}",
            "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
            "{% for m in messages %}{{ m.content[1:] }}{% endfor %}",
            "{% for m in messages %}{{ m.content }}{% endfor %}\u{E000}",
        ] {
            assert!(
                matches!(rendered(source, &talk()), Err(ModelError::Template(_))),
                "{source}"
            );
        }
    }

    #[test]
    fn a_template_reads_no_clock_and_ends() {
        for source in [
            "{{ strftime_now('%d') }}",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "{% for m in messages",
        ] {
            assert!(
                matches!(rendered(source, &talk()), Err(ModelError::Template(_))),
                "{source}"
            );
        }
    }

    #[test]
    fn methods_of_python_strings_are_there() {
        let parts = rendered(
            "{% for m in messages %}{{ m.role.upper() }}{{ m.content.strip() }}{% endfor %}",
            &talk(),
        )
        .unwrap();
        assert_eq!(parts[0], Part::Template("SYSTEM".to_owned()));
    }
}
