//! Numbers that a text says in English words, as transcripts do.

use std::collections::BTreeSet;

use super::words::Word;

/// Every number that the words may say, in figures.
pub(super) fn spoken_numbers(words: &[Word]) -> BTreeSet<String> {
    let mut found = counted(words);
    for place in 0..words.len() {
        found.extend(read_otherwise(words, place));
    }
    found
}

fn value(word: &str) -> Option<u32> {
    let found = NUMBERS.iter().find(|number| number.0 == word);
    found.map(|number| number.1)
}

/// What begins at a place and is no plain number: `a hundred`, `twenty fifth`, `one and a half`, `two point five`, and
/// `twelve fifty`, which is a price or a year.
fn read_otherwise(words: &[Word], place: usize) -> Vec<String> {
    let at = |place: usize| words.get(place).map_or("", |word| word.folded.as_str());
    let ordinal = |place: usize| {
        let found = ORDINALS.iter().find(|number| number.0 == at(place));
        found.map(|number| number.1)
    };
    if let Some(number) = ordinal(place) {
        return vec![number.to_string()];
    }
    if let ("a" | "an", Some(number @ (100 | 1000))) = (at(place), value(at(place + 1))) {
        return vec![number.to_string()];
    }
    let Some((number, next)) = below_hundred(words, place) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some(unit) = ordinal(next).filter(|unit| *unit < 10 && number % 10 == 0) {
        found.push((number + unit).to_string());
    }
    if (at(next), at(next + 1), at(next + 2)) == ("and", "a", "half") {
        found.push(format!("{number}.5"));
    }
    if let ("point", Some((fraction, _))) = (at(next), below_hundred(words, next + 1)) {
        found.push(super::words::folded(&format!("{number}.{fraction}")));
    }
    let together = words.get(next).is_some_and(|word| word.joined);
    if let Some((rest @ 10.., _)) = below_hundred(words, next).filter(|_| together && number > 0) {
        found.push((number * 100 + rest).to_string());
        found.push(super::words::folded(&format!("{number}.{rest}")));
    }
    found
}

/// A number below a hundred that begins at a place, and the place behind it.
fn below_hundred(words: &[Word], place: usize) -> Option<(u32, usize)> {
    let at = |place: usize| value(words.get(place)?.folded.as_str());
    let tens = at(place).filter(|number| *number < 100)?;
    match at(place + 1) {
        Some(unit @ 1..10) if tens >= 20 => Some((tens + unit, place + 2)),
        _ => Some((tens, place + 1)),
    }
}

/// Numbers from 0 to 999,999 that a text says in English words, as transcripts do, in figures.
fn counted(words: &[Word]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // What is complete up to the last thousand, and what is being said since.
    let (mut thousands, mut open, mut last): (u32, Option<u32>, u32) = (0, None, 0);
    let close = |thousands: &mut u32, open: &mut Option<u32>, found: &mut BTreeSet<String>| {
        let rest = open.take();
        if rest.is_some() || *thousands > 0 {
            found.insert((*thousands + rest.unwrap_or(0)).to_string());
        }
        *thousands = 0;
    };
    for word in words {
        let value = value(&word.folded);
        match (value, open) {
            (Some(100), Some(before)) if before < 10 => (open, last) = (Some(before * 100), 100),
            (Some(1000), Some(before)) if thousands == 0 => {
                (thousands, open, last) = (before * 1000, None, 1000);
            }
            // `twenty five`, `two hundred (and) ten`: what follows is smaller than what it is added to.
            (Some(value), Some(before))
                if value < 100 && last >= 20 && (value < 10 || last >= 100) =>
            {
                (open, last) = (Some(before + value), value);
            }
            (Some(value), _) if value < 100 => {
                if open.is_some() || last < 1000 {
                    close(&mut thousands, &mut open, &mut found);
                }
                (open, last) = (Some(value), value);
            }
            (None, _) if word.folded == "and" && last >= 100 => {}
            _ => {
                close(&mut thousands, &mut open, &mut found);
                last = 0;
            }
        }
    }
    close(&mut thousands, &mut open, &mut found);
    found
}

const NUMBERS: [(&str, u32); 30] = [
    ("zero", 0),
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("hundred", 100),
    ("thousand", 1000),
];

const ORDINALS: [(&str, u32); 21] = [
    ("first", 1),
    ("second", 2),
    ("third", 3),
    ("fourth", 4),
    ("fifth", 5),
    ("sixth", 6),
    ("seventh", 7),
    ("eighth", 8),
    ("ninth", 9),
    ("tenth", 10),
    ("eleventh", 11),
    ("twelfth", 12),
    ("thirteenth", 13),
    ("fourteenth", 14),
    ("fifteenth", 15),
    ("sixteenth", 16),
    ("seventeenth", 17),
    ("eighteenth", 18),
    ("nineteenth", 19),
    ("twentieth", 20),
    ("thirtieth", 30),
];

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn counted_numbers_are_read_as_they_are_said() {
        for (said, figures) in [
            ("twenty five or thirty", &["25", "30"][..]),
            ("two hundred and ten thousand", &["210000"]),
            ("one two three", &["1", "2", "3"]),
            ("one thousand two hundred fifty", &["1250"]),
            ("a hundred", &[]),
            ("nineteen ninety nine", &["19", "99"]),
            ("five thousand", &["5000"]),
        ] {
            let found: Vec<String> = counted(&words(said)).into_iter().collect();
            assert_eq!(found, figures, "{said}");
        }
    }

    #[test]
    fn days_prices_years_and_fractions_are_read_too() {
        for (said, figure) in [
            ("on the twenty fifth of July", "25"),
            ("on the third", "3"),
            ("a hundred hours", "100"),
            ("twelve fifty", "12.5"),
            ("nineteen ninety nine", "1999"),
            ("one and a half gigs", "1.5"),
            ("two point five", "2.5"),
        ] {
            let found = spoken_numbers(&words(said));
            assert!(found.contains(figure), "{said}: {found:?}");
        }
        let apart = spoken_numbers(&words("twenty, thirty"));
        assert!(!apart.contains("2030"), "{apart:?}");
    }
}
