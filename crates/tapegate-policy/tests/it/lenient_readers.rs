//! Models of very lenient servers: the calls that each of them would find in a text.
//!
//! Nothing here is shared with the code under test: it has its own parser, line splitting and
//! member lookup.

/// A value as a lenient parser reads it. Members keep their order and their duplicates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ParsedValue {
    Object(Vec<(String, ParsedValue)>),
    Array(Vec<ParsedValue>),
    Text(String),
    Other,
}

/// A set of lenient behaviours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LenientReader {
    /// The first of duplicate members wins, not the last.
    first: bool,
    /// Names are case-insensitive.
    folds: bool,
    /// A string ends at a NUL.
    stops_at_nul: bool,
    /// Unpaired surrogates are dropped.
    drops_halves: bool,
    /// `__proto__` sets the prototype, in which members are looked up too, as in JavaScript.
    has_prototypes: bool,
}

/// A call that a reader finds in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCall {
    pub(crate) tool: String,
    pub(crate) path: Option<String>,
}

/// All combinations of behaviours.
pub(crate) fn readers() -> impl Iterator<Item = LenientReader> {
    (0..32).map(|bits: u32| LenientReader {
        first: bits & 1 != 0,
        folds: bits & 2 != 0,
        stops_at_nul: bits & 4 != 0,
        drops_halves: bits & 8 != 0,
        has_prototypes: bits & 16 != 0,
    })
}

/// The tool calls that any reader finds in a text that arrived as a line.
pub(crate) fn calls_in_line(bytes: &[u8]) -> Vec<FoundCall> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut found = Vec::new();
    for reader in readers() {
        reader.calls(&text, &mut found);
        // Some readers split lines elsewhere.
        let ends = |letter: char| matches!(letter, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
        for line in text.split(|letter| ends(letter) || letter == '\0') {
            reader.calls(line, &mut found);
        }
        // Some readers decode escapes first. A line is then a message if it looks like one.
        let plain = unescaped(&text);
        for line in plain.split(ends).skip(1) {
            let line = line.trim_start();
            let says_so = matches!(LenientParser::new(line, reader).value(0), Some(ParsedValue::Object(members))
                if members.iter().any(|(key, _)| key == "jsonrpc"));
            if line.starts_with('{') && says_so {
                reader.calls(line, &mut found);
            }
        }
    }
    found
}

/// The tool calls that any reader finds in a text that arrived as a body.
pub(crate) fn calls_in_body(bytes: &[u8]) -> Vec<FoundCall> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut found = Vec::new();
    readers().for_each(|reader| reader.calls(&text, &mut found));
    found
}

impl LenientReader {
    /// The calls in a text, ignoring anything after it.
    fn calls(self, text: &str, found: &mut Vec<FoundCall>) {
        let text = text.trim_start_matches('\u{feff}');
        match LenientParser::new(text, self).value(0) {
            Some(ParsedValue::Array(messages)) => {
                messages.iter().for_each(|message| self.call(message, found));
            }
            Some(message) => self.call(&message, found),
            None => {}
        }
    }

    fn call(self, message: &ParsedValue, found: &mut Vec<FoundCall>) {
        let Some(ParsedValue::Text(method)) = self.member(message, "method") else { return };
        if method.trim() != "tools/call" {
            return;
        }
        let Some(params) = self.member(message, "params") else { return };
        let Some(ParsedValue::Text(tool)) = self.member(params, "name") else { return };
        let arguments = self.member(params, "arguments");
        let path = arguments.and_then(|arguments| self.member(arguments, "path"));
        let path = match path {
            Some(ParsedValue::Text(path)) => Some(path.clone()),
            _ => None,
        };
        found.push(FoundCall { tool: tool.clone(), path });
    }

    fn member<'v>(self, value: &'v ParsedValue, name: &str) -> Option<&'v ParsedValue> {
        let ParsedValue::Object(members) = value else { return None };
        let is = |key: &str| match self.folds {
            true => key.replace('\u{17f}', "s").to_lowercase() == name,
            false => key == name,
        };
        let mut named = members.iter().filter(|(key, _)| is(key)).map(|(_, value)| value);
        let own = if self.first { named.next() } else { named.next_back() };
        own.or_else(|| {
            let mut all =
                members.iter().filter(|(key, _)| self.has_prototypes && key == "__proto__");
            let (_, prototype) = all.next_back()?;
            self.member(prototype, name)
        })
    }
}

/// A text with one layer of escapes decoded.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                out.push(code.and_then(char::from_u32).unwrap_or('?'));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

struct LenientParser<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    reader: LenientReader,
}

impl<'t> LenientParser<'t> {
    fn new(text: &'t str, reader: LenientReader) -> Self {
        Self { rest: text.chars().peekable(), reader }
    }

    fn space(&mut self) {
        while self.rest.next_if(|letter| letter.is_whitespace() || *letter == '\0').is_some() {}
    }

    fn value(&mut self, depth: usize) -> Option<ParsedValue> {
        self.space();
        if depth > 200 {
            return None;
        }
        match self.rest.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' => self.string().map(ParsedValue::Text),
            _ => {
                let mut some = false;
                while self.rest.next_if(|c| c.is_alphanumeric() || "+-.".contains(*c)).is_some() {
                    some = true;
                }
                some.then_some(ParsedValue::Other)
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<ParsedValue> {
        self.rest.next();
        let mut members = Vec::new();
        loop {
            self.space();
            match self.rest.peek()? {
                '}' => {
                    self.rest.next();
                    return Some(ParsedValue::Object(members));
                }
                ',' => {
                    self.rest.next();
                }
                '"' => {
                    let key = self.string()?;
                    self.space();
                    self.rest.next_if_eq(&':')?;
                    members.push((key, self.value(depth + 1)?));
                }
                _ => return None,
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<ParsedValue> {
        self.rest.next();
        let mut values = Vec::new();
        loop {
            self.space();
            match self.rest.peek()? {
                ']' => {
                    self.rest.next();
                    return Some(ParsedValue::Array(values));
                }
                ',' => {
                    self.rest.next();
                }
                _ => values.push(self.value(depth + 1)?),
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        self.rest.next();
        let mut units: Vec<u16> = Vec::new();
        loop {
            let letter = match self.rest.next()? {
                '"' => break,
                '\\' => match self.rest.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'u' => {
                        let digits: String = self.rest.by_ref().take(4).collect();
                        units.push(u16::from_str_radix(&digits, 16).ok()?);
                        continue;
                    }
                    other => other,
                },
                letter => letter,
            };
            units.extend_from_slice(letter.encode_utf16(&mut [0; 2]));
        }
        let text: String = char::decode_utf16(units)
            .filter_map(|unit| match unit {
                Ok(letter) => Some(letter),
                Err(_) if self.reader.drops_halves => None,
                Err(_) => Some('\u{fffd}'),
            })
            .collect();
        let end = text.find('\0').filter(|_| self.reader.stops_at_nul);
        Some(text[..end.unwrap_or(text.len())].to_owned())
    }
}

#[test]
fn careless_readers_find_what_careful_ones_do_not() {
    let found = |text: &str| {
        let found = calls_in_line(text.as_bytes());
        found.iter().any(|call| call.tool == "rm")
    };
    for text in [
        r#"{"method":"tools/call","params":{"name":"rm"}}"#,
        r#"{"method":"tools/call","params":{"name":"rm","name":"ls"}}"#,
        r#"{"METHOD":"tools/call","Params":{"nAme":"ls","name":"\u0072m"}} x"#,
        "{\"a\":1}\r{\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
        r#"{"method":"tools/call","params":{"name":"rm\u0000x"}}"#,
        r#"{"method":"tools/call","params":{"name":"r\ud800m"}}"#,
        r#"{"a":"\n{\"jsonrpc\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}"}"#,
        r#"[{"method":"tools/call","params":{"name":"rm"}}]"#,
        r#"{"method":"tools/call","params":{"__proto__":{"name":"rm"}}}"#,
        r#"{"__proto__":{"__proto__":{"method":"tools/call"},"params":{"name":"rm"}}}"#,
    ] {
        assert!(found(text), "{text}");
    }
    assert!(!found(r#"{"method":"tools/call","params":{"name":"ls"}}"#));
}
