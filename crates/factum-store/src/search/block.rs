//! The bytes of the index: numbers of variable length, postings, blocks of terms.
//!
//! Postings are a list of passage numbers, each with how often the term is there (up to 7) and how long the
//! passage is (in steps of a quarter): one byte. Reading never panics; what can't be read is `None`.

use factum_base::Span;

pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: u64) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or(0)
}

pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take_slice<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(take(bytes)?).ok()?;
    let (slice, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(slice)
}

/// How often a term is in a passage, and how long that is, as one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight(pub(super) u8);

impl Weight {
    pub(super) fn new(count: u32, length: u32) -> Self {
        let count = count.clamp(1, 7);
        // Lengths 1, 2, 3, 4, then four steps to each doubling: 32 steps reach about 500 terms.
        let step = if length <= 4 {
            length
        } else {
            let doubling = length.ilog2();
            let quarter = (length >> (doubling - 2)) & 3;
            4 * (doubling - 1) + quarter
        };
        Self(u8::try_from((count << 5) | step.min(31)).unwrap_or(u8::MAX))
    }

    pub(super) fn count(self) -> u8 {
        self.0 >> 5
    }

    pub(super) fn length(self) -> u32 {
        let step = u32::from(self.0 & 31);
        match step {
            0..=4 => step,
            _ => ((4 + (step & 3)) << (step / 4 + 1)) >> 2,
        }
    }
}

/// Postings of one term under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Postings {
    pub(super) count: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The first's weight, then distances and weights.
    pub(super) rest: Vec<u8>,
}

impl Postings {
    pub(super) fn push(&mut self, passage: u64, weight: Weight) {
        if self.count == 0 {
            self.first = passage;
        } else {
            put(&mut self.rest, passage - self.last);
        }
        self.rest.push(weight.0);
        self.last = passage;
        self.count += 1;
    }

    /// Adds postings whose passages all come later.
    pub(super) fn append(&mut self, later: &Self) -> Option<()> {
        if later.count == 0 {
            return Some(());
        }
        if self.count == 0 {
            *self = later.clone();
            return Some(());
        }
        put(&mut self.rest, later.first.checked_sub(self.last)?);
        self.rest.extend_from_slice(&later.rest);
        self.last = later.last;
        self.count += later.count;
        Some(())
    }

    /// Calls `each` with every passage and weight; `None` where the bytes are damaged.
    pub(super) fn each(&self, mut each: impl FnMut(u64, Weight)) -> Option<()> {
        let mut bytes = &self.rest[..];
        let mut passage = self.first;
        for number in 0..self.count {
            if number > 0 {
                passage = passage.checked_add(take(&mut bytes)?)?;
            }
            let (&weight, rest) = bytes.split_first()?;
            bytes = rest;
            each(passage, Weight(weight));
        }
        bytes.is_empty().then_some(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        put(out, self.count);
        put(out, self.first);
        put(out, self.last);
        put(out, self.rest.len() as u64);
        out.extend_from_slice(&self.rest);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            count: take(bytes)?,
            first: take(bytes)?,
            last: take(bytes)?,
            rest: take_slice(bytes)?.to_vec(),
        })
    }

    fn skip(bytes: &mut &[u8]) -> Option<()> {
        for _ in 0..3 {
            take(bytes)?;
        }
        take_slice(bytes).map(|_| ())
    }
}

/// A block of terms being written, in order.
#[derive(Debug, Default)]
pub(super) struct BlockWriter {
    pub(super) first: String,
    last: String,
    pub(super) bytes: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn add(&mut self, term: &str, postings: &Postings) {
        if self.bytes.is_empty() {
            term.clone_into(&mut self.first);
            self.last.clear();
        }
        let shared = term
            .bytes()
            .zip(self.last.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        put(&mut self.bytes, shared as u64);
        put(&mut self.bytes, (term.len() - shared) as u64);
        self.bytes.extend_from_slice(&term.as_bytes()[shared..]);
        postings.write(&mut self.bytes);
        term.clone_into(&mut self.last);
    }
}

fn next_term(bytes: &mut &[u8], term: &mut Vec<u8>) -> Option<()> {
    let shared = usize::try_from(take(bytes)?).ok()?;
    if shared > term.len() {
        return None;
    }
    term.truncate(shared);
    term.extend_from_slice(take_slice(bytes)?);
    Some(())
}

/// The postings of a term in a block, empty where it is not there; `None` where the block is damaged.
pub(super) fn find(mut bytes: &[u8], wanted: &str) -> Option<Postings> {
    let mut term = Vec::new();
    while !bytes.is_empty() {
        next_term(&mut bytes, &mut term)?;
        match term.as_slice().cmp(wanted.as_bytes()) {
            std::cmp::Ordering::Equal => return Postings::read(&mut bytes),
            std::cmp::Ordering::Greater => return Some(Postings::default()),
            std::cmp::Ordering::Less => Postings::skip(&mut bytes)?,
        }
    }
    Some(Postings::default())
}

/// All terms of a block; `None` where it is damaged.
pub(super) fn read_all(mut bytes: &[u8]) -> Option<Vec<(String, Postings)>> {
    let mut term = Vec::new();
    let mut out = Vec::new();
    while !bytes.is_empty() {
        next_term(&mut bytes, &mut term)?;
        let text = String::from_utf8(term.clone()).ok()?;
        out.push((text, Postings::read(&mut bytes)?));
    }
    Some(out)
}

/// Spans in order, as distances.
pub(super) fn write_spans(spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::with_capacity(spans.len() * 3);
    let mut end = 0;
    for span in spans {
        put(&mut out, u64::from(span.start - end));
        put(&mut out, u64::from(span.end - span.start));
        end = span.end;
    }
    out
}

pub(super) fn read_spans(mut bytes: &[u8]) -> Option<Vec<Span>> {
    let mut out = Vec::new();
    let mut end = 0u32;
    while !bytes.is_empty() {
        let start = end.checked_add(u32::try_from(take(&mut bytes)?).ok()?)?;
        end = start.checked_add(u32::try_from(take(&mut bytes)?).ok()?)?;
        out.push(Span::new(start, end));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_weight_keeps_lengths_to_a_quarter() {
        for length in 1..2_000u32 {
            let kept = Weight::new(3, length);
            assert_eq!(kept.count(), 3);
            if length < 512 {
                assert!(
                    kept.length() <= length && kept.length() * 5 >= length * 4,
                    "{length}: {}",
                    kept.length()
                );
            }
        }
        assert_eq!(Weight::new(99, 10).count(), 7);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(terms in prop::collection::btree_map("[a-c]{1,4}|水|管理", prop::collection::btree_map(0u64..5_000, 1u32..9, 1..30), 0..20)) {
            let mut writer = BlockWriter::default();
            let mut expected = Vec::new();
            for (term, passages) in &terms {
                let mut postings = Postings::default();
                for (passage, count) in passages {
                    postings.push(*passage, Weight::new(*count, 12));
                }
                writer.add(term, &postings);
                expected.push((term.clone(), postings));
            }
            for (term, postings) in &expected {
                prop_assert_eq!(find(&writer.bytes, term), Some(postings.clone()));
                let mut passages = Vec::new();
                postings.each(|passage, _| passages.push(passage)).unwrap();
                prop_assert_eq!(&passages, &terms[term].keys().copied().collect::<Vec<_>>());
            }
            prop_assert_eq!(find(&writer.bytes, "zz"), Some(Postings::default()));
            prop_assert_eq!(read_all(&writer.bytes), Some(expected));
        }

        #[test]
        fn appended_postings_equal_those_written_at_once(split in 0usize..20, passages in prop::collection::btree_set(0u64..9_999, 20)) {
            let all: Vec<u64> = passages.into_iter().collect();
            let list = |part: &[u64]| {
                let mut postings = Postings::default();
                for passage in part {
                    postings.push(*passage, Weight(40));
                }
                postings
            };
            let mut first = list(&all[..split]);
            first.append(&list(&all[split..])).unwrap();
            prop_assert_eq!(first, list(&all));
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes: Vec<u8>, term in "[a-z]{1,4}") {
            let _ = find(&bytes, &term);
            if let Some(terms) = read_all(&bytes) {
                for (_, postings) in terms {
                    // A count may promise more than there is.
                    if postings.count < 10_000 {
                        let _ = postings.each(|_, _| ());
                    }
                }
            }
            let _ = read_spans(&bytes);
        }
    }
}
