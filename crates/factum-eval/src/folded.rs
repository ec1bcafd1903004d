//! The one rule by which a phrase is found in a text, for events and forbidden claims alike.
//!
//! Two texts are the same where their full Unicode case foldings are canonically equivalent, with every run of
//! white space as one space, typographic quotation marks and hyphens as plain ones, and invisible characters left
//! out. A phrase is found only as whole words: `Ann` is not in `Annex`, `100` not in `100.50` or `1,100`. Scripts
//! that set no spaces between words (Chinese, Japanese, Korean particles, Thai) have no such boundaries. A phrase
//! never begins or ends within a character as readers see it, so `e` is not in `é`, however either is encoded.

use icu_casemap::CaseMapper;
use icu_normalizer::DecomposingNormalizer;
use unicode_segmentation::UnicodeSegmentation as _;

/// A text ready to be searched, or a phrase to be searched for.
#[derive(Debug, Clone)]
pub struct Folded {
    text: String,
    units: Vec<Unit>,
    /// Length of the original in bytes and code points.
    end: (u32, u32),
}

/// A character as readers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    /// Its first byte in the folded text.
    folded: u32,
    /// Its first byte in the original.
    byte: u32,
    /// Its first code point in the original.
    point: u32,
}

/// Where a phrase was found in the original text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The first code point.
    pub point: u32,
}

impl Folded {
    /// Folds a text.
    pub fn new(text: &str) -> Self {
        if text.is_ascii() {
            Self::ascii(text)
        } else {
            Self::any(text)
        }
    }

    /// As [`Self::any`] does, for text whose every byte is a character. Most sources are such, and long.
    fn ascii(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        let mut units = Vec::with_capacity(text.len());
        let mut space_before = false;
        for (byte, one) in text.bytes().enumerate() {
            let is_space = char::from(one).is_whitespace();
            if is_space && space_before {
                continue;
            }
            space_before = is_space;
            units.push(Unit {
                folded: index(out.len()),
                byte: index(byte),
                point: index(byte),
            });
            out.push(if is_space {
                ' '
            } else {
                char::from(one.to_ascii_lowercase())
            });
        }
        Self {
            text: out,
            units,
            end: (index(text.len()), index(text.len())),
        }
    }

    fn any(text: &str) -> Self {
        let mapper = CaseMapper::new();
        let normalizer = DecomposingNormalizer::new_nfd();
        let mut out = String::with_capacity(text.len());
        let mut units = Vec::with_capacity(text.len());
        let mut point = 0_u32;
        let mut space_before = false;
        for (byte, cluster) in text.grapheme_indices(true) {
            let unit = Unit {
                folded: index(out.len()),
                byte: index(byte),
                point,
            };
            point += index(cluster.chars().count());
            if cluster.chars().all(char::is_whitespace) {
                if !space_before {
                    units.push(unit);
                    out.push(' ');
                }
                space_before = true;
                continue;
            }
            if cluster.chars().all(is_invisible) {
                continue;
            }
            space_before = false;
            units.push(unit);
            if let [one] = cluster.as_bytes() {
                out.push(char::from(one.to_ascii_lowercase()));
            } else {
                let plain: String = cluster
                    .chars()
                    .filter(|&c| !is_invisible(c))
                    .map(plain)
                    .collect();
                let decomposed = normalizer.normalize(&plain);
                let folded = mapper.fold_string(&decomposed);
                out.push_str(&normalizer.normalize(&folded));
            }
        }
        Self {
            text: out,
            units,
            end: (index(text.len()), point),
        }
    }

    /// A phrase: the same without white space at its ends.
    pub fn phrase(text: &str) -> Self {
        Self::new(text.trim())
    }

    /// The folded text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a text could hold this phrase at all.
    pub fn can_match(&self) -> bool {
        let alone = !self.is_empty() && self.has_word();
        // As in a text: after one word and before another.
        alone
            && Self::new(&format!("x {} x", self.text))
                .first(self)
                .is_some()
    }

    fn has_word(&self) -> bool {
        self.text.chars().any(|c| !c.is_whitespace())
    }

    /// All places where `phrase` stands, in order.
    pub fn hits<'t>(&'t self, phrase: &'t Self) -> impl Iterator<Item = Hit> + 't {
        let mut from = 0;
        std::iter::from_fn(move || {
            if phrase.is_empty() {
                return None;
            }
            while let Some(found) = self.text.get(from..)?.find(&phrase.text) {
                let start = from + found;
                let first = self.text[start..].chars().next()?;
                from = start + first.len_utf8();
                if let Some(hit) = self.hit(start, start + phrase.text.len()) {
                    return Some(hit);
                }
            }
            from = self.text.len();
            None
        })
    }

    /// The first place where `phrase` stands.
    pub fn first(&self, phrase: &Self) -> Option<Hit> {
        self.hits(phrase).next()
    }

    fn hit(&self, start: usize, end: usize) -> Option<Hit> {
        let first = self.unit_at(start)?;
        let behind = if end == self.text.len() {
            self.units.len()
        } else {
            self.unit_at(end)?
        };
        if !self.is_boundary(first) || !self.is_boundary(behind) {
            return None;
        }
        let bytes_end = self.units.get(behind).map_or(self.end.0, |unit| unit.byte);
        let unit = self.units.get(first)?;
        Some(Hit {
            start: unit.byte as usize,
            end: bytes_end as usize,
            point: unit.point,
        })
    }

    fn unit_at(&self, folded: usize) -> Option<usize> {
        self.units
            .binary_search_by_key(&folded, |unit| unit.folded as usize)
            .ok()
    }

    fn base(&self, unit: usize) -> Option<char> {
        let at = self.units.get(unit)?.folded as usize;
        self.text[at..].chars().next()
    }

    /// Whether a word may begin or end before this unit.
    fn is_boundary(&self, unit: usize) -> bool {
        let Some(before) = unit.checked_sub(1).and_then(|unit| self.base(unit)) else {
            return true;
        };
        let Some(after) = self.base(unit) else {
            return true;
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if is_word(before) && is_word(after) {
            return is_unspaced(before) || is_unspaced(after);
        }
        // Within a number: `100` is not in `100.50`.
        let digit_at = |unit: Option<usize>| {
            unit.and_then(|unit| self.base(unit))
                .is_some_and(char::is_numeric)
        };
        let is_point = |c: char| matches!(c, '.' | ',' | '\'');
        let splits_after = before.is_numeric() && is_point(after) && digit_at(Some(unit + 1));
        let splits_before = is_point(before) && after.is_numeric() && digit_at(unit.checked_sub(2));
        !(splits_after || splits_before)
    }
}

fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn plain(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{02bc}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
        '\u{2010}' | '\u{2011}' => '-',
        other => other,
    }
}

/// Characters that change nothing a reader sees.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Letters of scripts that set no spaces between words, or hang particles on them.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1100..=0x11ff | 0x1780..=0x17ff
        | 0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x30ff | 0x3100..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7ff
        | 0xf900..=0xfaff | 0xff66..=0xffdc | 0x1_aff0..=0x1_b16f | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, phrase: &str) -> Option<u32> {
        Folded::new(text)
            .first(&Folded::phrase(phrase))
            .map(|hit| hit.point)
    }

    #[test]
    fn case_space_and_encoding_make_no_difference() {
        for (text, phrase, at) in [
            ("They reached IRONROOT\n  hold.", "Ironroot Hold", 13),
            ("Die Straße war nass", "STRASSE", 4),
            ("ΟΔΟΣ", "οδος", 0),
            ("caf\u{e9} noir", "CAFE\u{301}", 0),
            ("cafe\u{301} noir", "caf\u{e9}", 0),
            ("a don\u{2019}t b", "don't", 2),
            ("Iron\u{ad}root Hold", "ironroot", 0),
            (
                "\u{ac01} \u{1100}\u{1161}\u{11a8}",
                "\u{1100}\u{1161}\u{11a8}",
                0,
            ),
            ("Ann's coat", "ann", 0),
            ("x\u{a0}y", "x y", 0),
            ("👩‍💧 Ann", "Ann", 4),
        ] {
            assert_eq!(found(text, phrase), Some(at), "{text:?} {phrase:?}");
        }
    }

    #[test]
    fn a_phrase_is_found_as_whole_words_only() {
        for (text, phrase) in [
            ("the Annex", "Ann"),
            ("Joann", "Ann"),
            ("EUR 1,100", "100"),
            ("EUR 100.50", "100"),
            ("EUR 1000", "100"),
            ("caf\u{e9}", "cafe"),
            ("cafe\u{301}", "cafe"),
            ("an_ann", "ann"),
            ("stra\u{df}e", "stras"),
            ("👩‍💧", "👩"),
            ("\u{ac01}", "\u{ac00}"),
        ] {
            assert_eq!(found(text, phrase), None, "{text:?} {phrase:?}");
        }
        assert_eq!(found("Pay 100, then go.", "100"), Some(4));
        assert_eq!(found("the end is 100.", "100"), Some(11));
    }

    #[test]
    fn scripts_without_spaces_have_no_word_boundaries() {
        assert_eq!(found("浴室の水道管が破裂した。", "水道管"), Some(3));
        assert_eq!(found("김민수는 갔다", "김민수"), Some(0));
        assert_eq!(found("鉄Ann鉄", "ann"), Some(1));
    }

    #[test]
    fn what_is_no_phrase_can_never_match() {
        for phrase in ["", "  ", "\u{200b}", "\u{ad}"] {
            assert!(!Folded::phrase(phrase).can_match(), "{phrase:?}");
        }
        for phrase in ["Ann", "水", "€", "100.50", "\u{e9}"] {
            assert!(Folded::phrase(phrase).can_match(), "{phrase:?}");
        }
    }

    proptest! {
        #[test]
        fn a_word_is_found_where_it_stands(before in "[a-zß水é ]{0,12}", word in "[a-zéß]{1,6}", after in "[a-zß水 ]{0,12}") {
            let text = format!("{before} {word} {after}");
            let folded = Folded::new(&text);
            let phrase = Folded::phrase(&word.to_uppercase());
            let hits: Vec<Hit> = folded.hits(&phrase).collect();
            let place = before.len() + 1;
            prop_assert!(hits.iter().any(|hit| (hit.start, hit.end) == (place, place + word.len())));
            for hit in hits {
                let points = text[..hit.start].chars().count();
                prop_assert_eq!(hit.point as usize, points);
                prop_assert!(text.get(hit.start..hit.end).is_some());
            }
        }

        #[test]
        fn ascii_folds_the_same_either_way(text in "[ -~\r\n\t\x00\x0b\x1f]{0,40}") {
            let (one, other) = (Folded::ascii(&text), Folded::any(&text));
            prop_assert_eq!(&one.text, &other.text);
            prop_assert_eq!(&one.units, &other.units);
            prop_assert_eq!(one.end, other.end);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", phrase in "\\PC{0,5}") {
            let folded = Folded::new(&text);
            let _ = folded.hits(&Folded::phrase(&phrase)).count();
        }
    }
}
