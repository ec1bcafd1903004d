//! The bytes of a JSON string of any text: so many code points, no control characters, nothing escaped that
//! need not be, no white space at either end.

/// How far a free text has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeState {
    /// Whole code points so far.
    chars: u32,
    /// The last one is white space.
    space: bool,
    /// After a backslash.
    escape: bool,
    /// Bytes that the current code point still needs, and between what the next one must lie.
    left: u8,
    low: u8,
    high: u8,
    /// Its bits so far.
    code: u32,
}

impl FreeState {
    pub(super) const START: Self = Self {
        chars: 0,
        space: false,
        escape: false,
        left: 0,
        low: 0x80,
        high: 0xBF,
        code: 0,
    };

    /// Whether the closing quote may come.
    pub(super) const fn may_end(self) -> bool {
        self.chars > 0 && !self.space && !self.escape && self.left == 0
    }

    /// The state after one more byte of the text.
    pub(super) fn step(self, byte: u8, max_chars: u32) -> Option<Self> {
        if self.left > 0 {
            return self.continued(byte, max_chars);
        }
        if self.escape {
            return matches!(byte, b'"' | b'\\').then(|| self.with('"'));
        }
        if self.chars >= max_chars {
            return None;
        }
        match byte {
            b'\\' => Some(Self {
                escape: true,
                ..self
            }),
            b'"' | 0..0x20 | 0x7F => None,
            0x20..0x7F => self.whole(char::from(byte), max_chars),
            _ => self.lead(byte),
        }
    }

    fn lead(self, byte: u8) -> Option<Self> {
        let (left, low, high, bits) = match byte {
            0xC2..=0xDF => (1, 0x80, 0xBF, byte & 0x1F),
            0xE0 => (2, 0xA0, 0xBF, 0),
            0xED => (2, 0x80, 0x9F, byte & 0x0F),
            0xE1..=0xEF => (2, 0x80, 0xBF, byte & 0x0F),
            0xF0 => (3, 0x90, 0xBF, 0),
            0xF1..=0xF3 => (3, 0x80, 0xBF, byte & 0x07),
            0xF4 => (3, 0x80, 0x8F, byte & 0x07),
            _ => return None,
        };
        Some(Self {
            left,
            low,
            high,
            code: u32::from(bits),
            ..self
        })
    }

    fn continued(self, byte: u8, max_chars: u32) -> Option<Self> {
        if !(self.low..=self.high).contains(&byte) {
            return None;
        }
        let next = Self {
            left: self.left - 1,
            low: 0x80,
            high: 0xBF,
            code: (self.code << 6) | u32::from(byte & 0x3F),
            ..self
        };
        if next.left > 0 {
            return Some(next);
        }
        let char = char::from_u32(next.code)?;
        next.whole(char, max_chars)
    }

    /// One more code point. White space can't come first, nor where only one more fits.
    fn whole(self, char: char, max_chars: u32) -> Option<Self> {
        let at_an_end = self.chars == 0 || self.chars + 1 >= max_chars;
        if char.is_control() || (char.is_whitespace() && at_an_end) {
            return None;
        }
        Some(self.with(char))
    }

    fn with(self, char: char) -> Self {
        Self {
            chars: self.chars + 1,
            space: char.is_whitespace(),
            ..Self::START
        }
    }
}
