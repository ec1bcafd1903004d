//! JSON with lines. Libraries give either strictness or lines; the grammar is small enough to have both.

use super::{Field, MOST_DEPTH, Node, SyntaxError, Value, push_field};

/// Reads one JSON value.
///
/// # Errors
/// The text is no JSON, a key is given twice, or a string holds a lone surrogate.
pub fn read_json(text: &str) -> Result<Node, SyntaxError> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        line: 1,
    };
    reader.skip_space();
    if reader.peek().is_none() {
        return Err(reader.wrong("the file is empty"));
    }
    let node = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.wrong("there is more after the value")),
    }
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line: u32,
}

impl Reader<'_> {
    fn wrong(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line, message)
    }

    fn expected(&self, what: &str) -> SyntaxError {
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            None => self.wrong(format!("expected {what}, but the text ends")),
            Some(found) => self.wrong(format!("expected {what}, found {found:?}")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MOST_DEPTH {
            return Err(self.wrong(format!("nested more than {MOST_DEPTH} deep")));
        }
        self.skip_space();
        let line = self.line;
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { line, value })
    }

    fn word(&mut self) -> Result<Value, SyntaxError> {
        for (word, value) in [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
        ] {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("a value"))
    }

    fn list(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.eat(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.eat(b']') {
                return Ok(Value::List(items));
            }
            if !self.eat(b',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        self.at += 1;
        let mut fields = Vec::new();
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Value::Map(fields));
        }
        loop {
            self.skip_space();
            let line = self.line;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in quotation marks"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.eat(b':') {
                return Err(self.expected("':'"));
            }
            let value = self.value(depth + 1)?;
            push_field(&mut fields, Field { key, line, value })?;
            self.skip_space();
            if self.eat(b'}') {
                return Ok(Value::Map(fields));
            }
            if !self.eat(b',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - from
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let from = self.at;
        self.eat(b'-');
        // A zero stands alone before the point.
        if !self.eat(b'0') && self.digits() == 0 {
            return Err(self.expected("a digit"));
        }
        if self.eat(b'.') && self.digits() == 0 {
            return Err(self.expected("a digit"));
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let written = &self.text[from..self.at];
        match written.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Number(number)),
            _ => Err(self.wrong(format!("{} is not a finite number", short(written)))),
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= 0x20)
            {
                self.at += 1;
            }
            out.push_str(&self.text[from..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    return Err(
                        self.wrong("a control character in text must be written as an escape")
                    );
                }
                None => return Err(self.wrong("the text ends within quotation marks")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        self.at += 1;
        let kind = self.peek();
        self.at += 1;
        Ok(match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(),
            _ => return Err(self.wrong("not an escape that JSON knows")),
        })
    }

    fn code_point(&mut self) -> Result<char, SyntaxError> {
        let first = self.hex()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let lone = || format!("\\u{first:04x} is a lone surrogate, which is no character");
        let paired = first < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u");
        if !paired {
            return Err(self.wrong(lone()));
        }
        self.at += 2;
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.wrong(lone()));
        }
        let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(joined).ok_or_else(|| self.wrong(lone()))
    }

    fn hex(&mut self) -> Result<u32, SyntaxError> {
        let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
        let all_hex = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
        let parsed = std::str::from_utf8(digits)
            .ok()
            .filter(|_| all_hex)
            .and_then(|text| u32::from_str_radix(text, 16).ok());
        self.at += 4;
        parsed.ok_or_else(|| self.wrong("\\u needs four hexadecimal digits"))
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
