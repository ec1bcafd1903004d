//! A document's place in its case file: an order key, not an index.
//!
//! Slots are text that sorts in document order byte by byte. Between any two there is always room for
//! another, so inserting a document changes no other document's slot. A slot is eight hex digits, then,
//! where documents were inserted between neighbours, a point and a hex fraction.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An order key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slot(String);

/// Text that is not a slot.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a slot: {0:?}")]
pub struct SlotError(String);

const FIRST: u32 = 0x8000_0000;

impl Slot {
    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn whole(&self) -> u32 {
        u32::from_str_radix(&self.0[..8], 16).unwrap_or(FIRST)
    }

    fn fraction(&self) -> Vec<u8> {
        self.0.bytes().skip(9).map(hex_value).collect()
    }

    fn from_parts(whole: u32, fraction: &[u8]) -> Self {
        let mut text = format!("{whole:08x}");
        if !fraction.is_empty() {
            text.push('.');
            text.extend(
                fraction
                    .iter()
                    .map(|&d| char::from_digit(u32::from(d), 16).unwrap_or('0')),
            );
        }
        Self(text)
    }

    /// `count` new slots in order, all after `low` and before `high` (open where `None`).
    ///
    /// `low` must sort before `high`.
    pub fn between(low: Option<&Self>, high: Option<&Self>, count: usize) -> Vec<Self> {
        let wanted = u32::try_from(count).unwrap_or(u32::MAX);
        match (low, high) {
            (None, None) => (0..wanted)
                .map(|n| Self::from_parts(FIRST + n, &[]))
                .collect(),
            (Some(low), None) if u32::MAX - low.whole() > wanted => (1..=wanted)
                .map(|n| Self::from_parts(low.whole() + n, &[]))
                .collect(),
            (None, Some(high)) if high.whole() > wanted => (0..wanted)
                .map(|n| Self::from_parts(high.whole() - wanted + n, &[]))
                .collect(),
            _ => {
                let mut slots = Vec::with_capacity(count);
                bisect(low, high, count, &mut slots);
                slots
            }
        }
    }
}

// Halving keeps the fractions short: their length grows with the logarithm of the count.
fn bisect(low: Option<&Slot>, high: Option<&Slot>, count: usize, out: &mut Vec<Slot>) {
    if count == 0 {
        return;
    }
    let middle = middle(low, high);
    bisect(low, Some(&middle), count / 2, out);
    out.push(middle.clone());
    bisect(Some(&middle), high, count - count / 2 - 1, out);
}

fn middle(low: Option<&Slot>, high: Option<&Slot>) -> Slot {
    let low_whole = low.map_or(0, Slot::whole);
    let low_fraction = low.map(Slot::fraction).unwrap_or_default();
    match high {
        Some(high) if high.whole() == low_whole => Slot::from_parts(
            low_whole,
            &between_fractions(&low_fraction, Some(&high.fraction())),
        ),
        Some(high) if high.whole() - low_whole > 1 => {
            Slot::from_parts(low_whole + (high.whole() - low_whole) / 2, &[])
        }
        _ => Slot::from_parts(low_whole, &between_fractions(&low_fraction, None)),
    }
}

/// A digit string strictly between two; `low` empty is zero, `high` absent is one.
fn between_fractions(low: &[u8], high: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut low, mut high) = (low, high);
    loop {
        let low_digit = low.first().copied().unwrap_or(0);
        let high_digit = high.map_or(16, |h| h.first().copied().unwrap_or(0));
        let low_rest = low.get(1..).unwrap_or(&[]);
        let high_rest = high.and_then(|h| h.get(1..)).unwrap_or(&[]);
        if high_digit > low_digit + 1 {
            out.push(low_digit.midpoint(high_digit));
            return out;
        }
        if high_digit == low_digit {
            out.push(low_digit);
            high = Some(high_rest);
        } else if high_rest.is_empty() {
            out.push(low_digit);
            high = None;
        } else {
            out.push(high_digit);
            return out;
        }
        low = low_rest;
    }
}

fn hex_value(byte: u8) -> u8 {
    char::from(byte)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
        .unwrap_or(0)
}

impl FromStr for Slot {
    type Err = SlotError;

    fn from_str(text: &str) -> Result<Self, SlotError> {
        let wrong = || SlotError(text.chars().take(80).collect());
        let is_hex = |s: &str| s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() && !fraction.ends_with('0') => {
                (whole, fraction)
            }
            Some(_) => return Err(wrong()),
            None => (text, ""),
        };
        if whole.len() == 8 && is_hex(whole) && is_hex(fraction) {
            Ok(Self(text.to_owned()))
        } else {
            Err(wrong())
        }
    }
}

impl TryFrom<String> for Slot {
    type Error = SlotError;
    fn try_from(text: String) -> Result<Self, SlotError> {
        text.parse()
    }
}
impl From<Slot> for String {
    fn from(slot: Slot) -> Self {
        slot.0
    }
}
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_is_always_room_and_no_slot_moves(inserts in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..9), 1..80)) {
            let mut slots: Vec<Slot> = Vec::new();
            for (index, count) in inserts {
                let at = index.index(slots.len() + 1);
                let low = at.checked_sub(1).and_then(|n| slots.get(n));
                let new = Slot::between(low, slots.get(at), count);
                prop_assert_eq!(new.len(), count);
                slots.splice(at..at, new);
            }
            prop_assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", slots);
            for slot in &slots {
                prop_assert_eq!(&slot.as_str().parse::<Slot>().unwrap(), slot);
            }
        }
    }

    #[test]
    fn inserting_ten_thousand_in_one_gap_keeps_slots_short() {
        let ends = Slot::between(None, None, 2);
        let many = Slot::between(Some(&ends[0]), Some(&ends[1]), 10_000);
        assert!(many.iter().all(|slot| slot.as_str().len() <= 16));
    }

    #[test]
    fn malformed_slots_are_refused() {
        for bad in [
            "",
            "8000000",
            "80000000.",
            "80000000.10",
            "8000000G",
            "80000000.g",
        ] {
            assert!(bad.parse::<Slot>().is_err(), "{bad}");
        }
    }
}
