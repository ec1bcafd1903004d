//! Markup inside a cue's payload: tags out, entities decoded, voices found.
//!
//! What is not certainly markup stays in the text: `a < b`, `<3`, `&c`. WebVTT's own rules would drop
//! more, but a word must not vanish from evidence because of a stray angle bracket.

/// A payload with its markup resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) text: String,
    /// Byte offsets in `text` where another voice takes over, ascending.
    pub(crate) voices: Vec<(usize, Option<String>)>,
}

const TAGS: &[&str] = &["c", "i", "b", "u", "s", "v", "lang", "ruby", "rt", "font"];

/// Appends one line of a payload.
pub(crate) fn push_line(payload: &mut Payload, line: &str, braces: bool) {
    let mut rest = line;
    while let Some(at) = rest.find(['<', '&', '{']) {
        payload.text.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match rest.as_bytes().first() {
            Some(b'<') => tag(payload, rest),
            Some(b'&') => entity(rest).map(|(c, length)| {
                payload.text.push(c);
                length
            }),
            // `{\an8}` and the like: position overrides that SubRip took from another format.
            Some(b'{') if braces && rest.starts_with("{\\") => {
                closed_by(rest, '{', '}').map(|end| end + 1)
            }
            _ => None,
        };
        let taken = taken.unwrap_or_else(|| {
            payload.text.push_str(&rest[..1]);
            1
        });
        rest = &rest[taken..];
    }
    payload.text.push_str(rest);
}

/// Where the bracket that opens `text` is closed. Brackets don't nest, so another opening one means
/// that it is not, and a line of nothing else does not cost its square.
fn closed_by(text: &str, open: char, close: char) -> Option<usize> {
    let end = text[1..].find([open, close])? + 1;
    text[end..].starts_with(close).then_some(end)
}

/// Length of the tag at the start of `rest`, if it is one.
fn tag(payload: &mut Payload, rest: &str) -> Option<usize> {
    let end = closed_by(rest, '<', '>')?;
    let inner = &rest[1..end];
    let (closing, inner) = match inner.strip_prefix('/') {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    let name_end = inner
        .find(|c: char| c == '.' || c.is_whitespace())
        .unwrap_or(inner.len());
    let name = inner[..name_end].to_ascii_lowercase();
    let is_time = !closing
        && name.starts_with(|c: char| c.is_ascii_digit())
        && crate::cues::parse_time(inner).is_some();
    let is_bare_end = closing && name.is_empty();
    if !(is_time || is_bare_end || TAGS.contains(&name.as_str())) {
        return None;
    }
    if name == "v" {
        let speaker = if closing {
            None
        } else {
            speaker(&inner[name_end..])
        };
        payload.voices.push((payload.text.len(), speaker));
    }
    Some(end + 1)
}

/// The name behind `v` and its classes.
fn speaker(annotation: &str) -> Option<String> {
    let (_, name) = annotation.split_once(char::is_whitespace)?;
    let mut decoded = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let (c, length) = entity(rest).unwrap_or(('&', 1));
        decoded.push(c);
        rest = &rest[length..];
    }
    decoded.push_str(rest);
    let name = decoded.split_whitespace().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

/// The character an entity at the start of `text` stands for, and the entity's length.
fn entity(text: &str) -> Option<(char, usize)> {
    const NAMED: &[(&str, char)] = &[
        ("&amp;", '&'),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&nbsp;", '\u{a0}'),
        ("&lrm;", '\u{200e}'),
        ("&rlm;", '\u{200f}'),
    ];
    if let Some(&(name, c)) = NAMED.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((c, name.len()));
    }
    let digits = text.strip_prefix("&#")?;
    let end = digits.bytes().take(12).position(|byte| byte == b';')?;
    let digits = &digits[..end];
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let c = char::from_u32(code.ok()?).filter(|&c| c != '\0')?;
    Some((c, end + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Payload {
        let mut payload = Payload::default();
        push_line(&mut payload, line, true);
        payload
    }

    #[test]
    fn tags_go_and_entities_are_decoded() {
        assert_eq!(
            read("<i>Caf\u{e9}</i> <c.x.y>a</c> <00:01.000>b").text,
            "Caf\u{e9} a b"
        );
        assert_eq!(
            read("&amp; &lt;you&gt; &#128512;&#x41; {\\an8}pos").text,
            "& <you> \u{1f600}A pos"
        );
    }

    #[test]
    fn what_is_not_markup_stays() {
        for line in [
            "a < b > c",
            "I <3 you",
            "R&D &c; &#xD800; &#0;",
            "<unknown>x</unknown>",
            "{x}",
            "<",
        ] {
            assert_eq!(read(line).text, line);
        }
    }

    #[test]
    fn a_voice_names_its_speaker() {
        let payload = read("<v.loud Mr &amp; Mrs  Smith>I never</v> <v>x");
        assert_eq!(payload.text, "I never x");
        assert_eq!(
            payload.voices,
            [(0, Some("Mr & Mrs Smith".to_owned())), (7, None), (8, None)]
        );
    }
}
