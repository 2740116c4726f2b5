//! Short texts for messages, readable for people and cut to a maximum length.
//!
//! Texts are decoded but not made safe for a terminal; that is up to the view.

use crate::frame::Envelope;
use crate::json::{self, Cursor, JsonFault, JsonKind, JsonStr};

/// Members of params that are shown elsewhere, or that every request of a client has.
const TOLD: [&str; 3] = ["name", "uri", "_meta"];

/// The arguments of a message: those of a tool call, or the other params.
pub(super) fn arguments(envelope: &Envelope<'_>, chars_max: usize) -> String {
    let mut brief = BriefText::new(chars_max);
    if let Some(params) = envelope.params {
        // Params were validated when the frame was read.
        brief.params(params, envelope).unwrap_or_default();
    }
    brief.finish()
}

/// A short text for a result, depending on the method.
pub(super) fn result(method: &str, result: &[u8], chars_max: usize) -> String {
    let members: Vec<_> = json::members(result).flatten().collect();
    let member =
        |name: &str| members.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| *value);
    let list = |name: &str| member(name).filter(|list| list.starts_with(b"["));
    if let Some(input_requests) = member("inputRequests") {
        return truncate(&format!("asks for input: {}", input_methods(input_requests)), chars_max);
    }
    for key in ["tools", "prompts", "resources", "resourceTemplates", "roots"] {
        if let Some(list) = list(key).filter(|_| method.ends_with("/list")) {
            return count_and_names(key, list, chars_max);
        }
    }
    if let Some(content) = list("content").or_else(|| list("contents")) {
        return contents(content, member("structuredContent"), chars_max);
    }
    if let Some(info) = member("serverInfo") {
        let text = |key: &str| json::member(info, key).and_then(json::string);
        let version = member("protocolVersion").and_then(json::string);
        let parts: Vec<_> =
            [text("name"), text("version"), version].into_iter().flatten().collect();
        return truncate(&parts.join(" "), chars_max);
    }
    if let Some(messages) = list("messages") {
        let count = json::elements(messages).flatten().count();
        return truncate(&format!("{count} message{}", plural(count)), chars_max);
    }
    value(result, chars_max)
}

/// A short text for an error: its code and its message.
pub(super) fn error(error: &[u8], chars_max: usize) -> (Option<i64>, String) {
    let code = json::member(error, "code").and_then(|code| std::str::from_utf8(code).ok());
    let code = code.and_then(|code| code.parse().ok());
    let message = json::member(error, "message").and_then(json::string);
    (code, message.map_or_else(|| value(error, chars_max), |text| truncate(&text, chars_max)))
}

/// JSON on one line, with its strings decoded.
pub(super) fn value(raw: &[u8], chars_max: usize) -> String {
    let mut brief = BriefText::new(chars_max);
    brief.value(raw).unwrap_or_default();
    brief.finish()
}

/// Cuts a text that is too long.
pub(super) fn truncate(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The methods of the requests that a server asks the client to answer.
fn input_methods(input_requests: &[u8]) -> String {
    let methods: Vec<_> = json::members(input_requests)
        .flatten()
        .filter_map(|(_, request)| json::member(request, "method").and_then(json::string))
        .collect();
    methods.join(", ")
}

/// The number of items, and their names.
fn count_and_names(key: &str, list: &[u8], chars_max: usize) -> String {
    let items: Vec<_> = json::elements(list).flatten().collect();
    let word = match key {
        "resourceTemplates" => "resource template",
        key => key.trim_end_matches('s'),
    };
    let mut out = format!("{} {word}{}", items.len(), plural(items.len()));
    let mut separator = ": ";
    let named = |item| ["name", "uri"].iter().find_map(|key| json::member(item, key));
    for name in items.into_iter().filter_map(named).filter_map(json::string) {
        if out.len() > chars_max * 4 {
            break;
        }
        out.push_str(separator);
        out.push_str(&name);
        separator = ", ";
    }
    truncate(&out, chars_max)
}

/// The content from a tool or a resource: its texts, and other parts by type.
fn contents(list: &[u8], structured: Option<&[u8]>, chars_max: usize) -> String {
    let items: Vec<_> = json::elements(list).flatten().collect();
    let mut out = String::new();
    for item in &items {
        if out.len() > chars_max * 4 {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        let text = |key: &str| json::member(item, key).and_then(json::string);
        match (text("text"), text("mimeType"), text("type")) {
            (Some(text), ..) => out.push_str(&truncate(&text, chars_max)),
            (None, Some(mime), _) => out.push_str(&format!("[{mime}]")),
            (None, None, Some(kind)) => out.push_str(&format!("[{kind}]")),
            (None, None, None) => out.push_str("[…]"),
        }
    }
    match structured {
        Some(structured) if out.is_empty() => value(structured, chars_max),
        _ if items.is_empty() => "empty".to_owned(),
        _ => truncate(&out, chars_max),
    }
}

/// Builds a text up to a maximum length.
struct BriefText {
    out: String,
    chars_left: usize,
    is_cut: bool,
}

impl BriefText {
    fn new(chars_max: usize) -> Self {
        Self { out: String::new(), chars_left: chars_max, is_cut: false }
    }

    fn finish(mut self) -> String {
        if self.is_cut {
            self.out.push('…');
        }
        self.out
    }

    fn push(&mut self, letter: char) {
        match self.chars_left.checked_sub(1) {
            Some(left) => {
                self.chars_left = left;
                self.out.push(letter);
            }
            None => self.is_cut = true,
        }
    }

    fn string(&mut self, string: JsonStr<'_>) {
        self.push('"');
        for code in string.scalars() {
            if self.is_cut {
                return;
            }
            match char::from_u32(code) {
                Some(letter @ ('"' | '\\')) => {
                    self.push('\\');
                    self.push(letter);
                }
                Some(letter) => self.push(letter),
                // An unpaired surrogate is not a character.
                None => format!("\\u{code:04x}").chars().for_each(|letter| self.push(letter)),
            }
        }
        self.push('"');
    }

    /// Appends a value, as far as it fits.
    fn value(&mut self, raw: &[u8]) -> Result<(), JsonFault> {
        let mut at = 0;
        while at < raw.len() && !self.is_cut {
            if raw[at] != b'"' {
                if !raw[at].is_ascii_whitespace() {
                    self.push(char::from(raw[at]));
                }
                at += 1;
                continue;
            }
            let length = string_length(&raw[at..]);
            let inner = raw.get(at + 1..at + length - 1).unwrap_or_default();
            self.string(JsonStr { raw: inner, escaped: inner.contains(&b'\\') });
            at += length;
        }
        Ok(())
    }

    /// Appends params without what is shown elsewhere; only the arguments, if there is nothing
    /// else.
    fn params(&mut self, params: &[u8], envelope: &Envelope<'_>) -> Result<(), JsonFault> {
        if Cursor::new(params)?.kind()? != JsonKind::Object {
            return self.value(params);
        }
        let is_told =
            |key: &JsonStr<'_>| TOLD.iter().any(|name| key.is(name)) && is_shown(key, envelope);
        let mut members: Vec<_> = json::members(params).flatten().collect();
        members.retain(|(key, _)| !is_told(key));
        match &members[..] {
            [] => Ok(()),
            [(key, value)] if key.is("arguments") => self.value(value),
            members => {
                for (at, (key, value)) in members.iter().enumerate() {
                    self.push(if at == 0 { '{' } else { ',' });
                    self.string(*key);
                    self.push(':');
                    self.value(value)?;
                }
                self.push('}');
                Ok(())
            }
        }
    }
}

/// Whether a member of params is shown elsewhere; a name that is not a string is not.
fn is_shown(key: &JsonStr<'_>, envelope: &Envelope<'_>) -> bool {
    match () {
        () if key.is("name") => envelope.name.is_some(),
        () if key.is("uri") => envelope.uri.is_some() && envelope.name.is_none(),
        () => true,
    }
}

/// The length of the string at the start of a JSON text, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}
