//! Tracks which tool arguments are mirrored in headers.
//!
//! A tool's schema may mark properties with `x-mcp-header`; a call must then carry their values as
//! `Mcp-Param-…` headers. A client on a pipe cannot set headers, so the marks are learned from the
//! tool lists that pass through, only for tools that have any, and within limits.

use std::collections::HashMap;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tapegate_core::frame::{self, Envelope};
use tapegate_core::json::{self, JsonFault};

use super::header_value;

const TOOLS_MAX: usize = 4096;
const MARKS_MAX: usize = 64;
const DEPTH_MAX: usize = 16;
const WORD_BYTES_MAX: usize = 256;

/// The marked properties, by tool.
#[derive(Debug, Default)]
pub(super) struct MirroredParams {
    tools: HashMap<String, Vec<MirroredProperty>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct MirroredProperty {
    /// The keys leading to it.
    path: Vec<String>,
    header: HeaderName,
}

impl MirroredParams {
    /// Learns from the result of `tools/list`.
    pub(super) fn learn_tools(&mut self, result: &[u8]) {
        let tools = json::member(result, "tools").map(frame::array_items).unwrap_or_default();
        for tool in tools {
            let Some(name) = json::member(tool, "name").and_then(json::string) else { continue };
            let mut marks = Vec::new();
            if let Some(schema) = json::member(tool, "inputSchema") {
                // If a schema is malformed, the marks found up to there count.
                walk(schema, &mut Vec::new(), &mut marks).ok();
            }
            if marks.is_empty() {
                self.tools.remove(name.as_ref());
            } else if name.len() <= WORD_BYTES_MAX
                && (self.tools.len() < TOOLS_MAX || self.tools.contains_key(name.as_ref()))
            {
                self.tools.insert(name.into_owned(), marks);
            }
        }
    }

    /// Adds the headers of a call of `tool`.
    pub(super) fn mirror(&self, tool: &str, params: &[u8], headers: &mut HeaderMap) {
        for (header, text) in self.marked_arguments(tool, params) {
            if let Ok(value) = HeaderValue::try_from(header_value::write(&text)) {
                headers.insert(header.clone(), value);
            }
        }
    }

    /// Whether the headers of a tool call fail to match its arguments.
    pub(super) fn headers_disagree(&self, call: &Envelope<'_>, headers: &HeaderMap) -> bool {
        self.marked_arguments_of(call).any(|(header, text)| {
            let mut values = headers.get_all(header).iter();
            let value = values.next().and_then(|value| value.to_str().ok());
            let header_text = value.and_then(|value| header_value::read(value.trim()));
            values.next().is_some()
                || !header_text.is_some_and(|header_text| means_same(&header_text, &text))
        })
    }

    /// Whether a header of a tool call contradicts the argument it mirrors. Servers of earlier
    /// revisions do not know these headers, so they may be absent.
    pub(super) fn headers_contradict(&self, call: &Envelope<'_>, headers: &HeaderMap) -> bool {
        self.marked_arguments_of(call).any(|(header, text)| {
            headers.get_all(header).iter().any(|value| {
                let header_text =
                    value.to_str().ok().and_then(|value| header_value::read(value.trim()));
                !header_text.is_some_and(|header_text| means_same(&header_text, &text))
            })
        })
    }

    fn marked_arguments_of<'a>(
        &'a self,
        call: &Envelope<'a>,
    ) -> impl Iterator<Item = (&'a HeaderName, String)> {
        let call = call.name.zip(call.params);
        call.into_iter().flat_map(|(name, params)| self.marked_arguments(&name.decode(), params))
    }

    /// The marked arguments of a call of `tool`, by header.
    fn marked_arguments<'a>(
        &'a self,
        tool: &str,
        params: &'a [u8],
    ) -> impl Iterator<Item = (&'a HeaderName, String)> + use<'a> {
        let marks = self.tools.get(tool);
        let arguments = json::member(params, "arguments");
        let marked = marks.zip(arguments).into_iter().flat_map(|(marks, arguments)| {
            marks.iter().map(move |mark| {
                let found = mark.path.iter().try_fold(arguments, |at, key| json::member(at, key));
                Some((&mark.header, found.and_then(text_of)?))
            })
        });
        marked.flatten()
    }
}

/// Collects the marks of a schema. Only nested `properties` can be marked.
fn walk(
    schema: &[u8],
    path: &mut Vec<String>,
    marks: &mut Vec<MirroredProperty>,
) -> Result<(), JsonFault> {
    if path.len() > DEPTH_MAX {
        return Ok(());
    }
    for member in json::members(schema) {
        let (key, value) = member?;
        if key.is("x-mcp-header") && !path.is_empty() {
            add(value, path, marks);
        } else if key.is("properties") {
            walk_properties(value, path, marks)?;
        }
    }
    Ok(())
}

fn walk_properties(
    properties: &[u8],
    path: &mut Vec<String>,
    marks: &mut Vec<MirroredProperty>,
) -> Result<(), JsonFault> {
    for member in json::members(properties) {
        let (key, value) = member?;
        if key.raw.len() <= WORD_BYTES_MAX {
            path.push(key.decode().into_owned());
            walk(value, path, marks)?;
            path.pop();
        }
    }
    Ok(())
}

fn add(word: &[u8], path: &[String], marks: &mut Vec<MirroredProperty>) {
    let Some(word) = json::string(word) else { return };
    if word.is_empty() || word.len() > WORD_BYTES_MAX || marks.len() >= MARKS_MAX {
        return;
    }
    let Ok(header) = HeaderName::from_bytes(format!("mcp-param-{word}").as_bytes()) else { return };
    if marks.iter().all(|mark| mark.header != header) {
        marks.push(MirroredProperty { path: path.to_vec(), header });
    }
}

/// Whether a header equals an argument. Numbers may be spelled differently.
fn means_same(header_text: &str, text: &str) -> bool {
    let number =
        |text: &str| text.parse::<f64>().ok().filter(|_| !text.contains(char::is_alphabetic));
    header_text == text
        || number(header_text).is_some_and(|header_text| number(text) == Some(header_text))
}

/// The text of a value that can be mirrored: a string, a boolean or a number.
fn text_of(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    match value.first()? {
        b'"' => json::string(value).map(std::borrow::Cow::into_owned),
        b't' | b'f' => Some(text.to_owned()),
        // Servers compare decimals; an exponent is legal in JSON but not in the header.
        b'-' | b'0'..=b'9' if text.contains(['e', 'E']) => {
            let number: f64 = text.parse().ok()?;
            number.is_finite().then(|| number.to_string())
        }
        b'-' | b'0'..=b'9' => Some(text.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapegate_core::frame::Frame;

    const LIST: &str = r#"{"tools":[
        {"name":"plain","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}},
        {"name":"query","inputSchema":{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
            "again":{"x-mcp-header":"region"},
            "bad":{"x-mcp-header":"no token"},
            "list":{"items":{"x-mcp-header":"Item"}},
            "flag":{"type":"boolean","x-mcp-header":"Flag"}}}}]}"#;

    fn mirrored(params: &MirroredParams, arguments: &str) -> Vec<String> {
        let call = format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"query","arguments":{arguments}}}}}"#
        );
        let mut headers = HeaderMap::new();
        let frame = Frame::read(call.as_bytes());
        let envelope = frame.envelope().unwrap();
        params.mirror(&envelope.name.unwrap().decode(), envelope.params.unwrap(), &mut headers);
        let mut shown: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn marked_arguments_are_mirrored_and_others_are_not() {
        let mut params = MirroredParams::default();
        params.learn_tools(LIST.as_bytes());
        assert_eq!(params.tools.len(), 1);
        let arguments =
            r#"{"region":"Zürich","deep":{"n":1e3},"flag":true,"list":[1],"again":"x"}"#;
        assert_eq!(
            mirrored(&params, arguments),
            ["mcp-param-flag=true", "mcp-param-n=1000", "mcp-param-region==?base64?WsO8cmljaA==?="]
        );
        assert!(mirrored(&params, r#"{"region":null,"deep":7}"#).is_empty());
    }

    #[test]
    fn headers_must_say_what_marked_arguments_do() {
        let mut params = MirroredParams::default();
        params.learn_tools(LIST.as_bytes());
        let disagree = |arguments: &str, lines: &[(&'static str, &'static str)]| {
            let call = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"query","arguments":{arguments}}}}}"#
            );
            let mut headers = HeaderMap::new();
            for &(name, value) in lines {
                headers.append(name, HeaderValue::from_static(value));
            }
            params.headers_disagree(Frame::read(call.as_bytes()).envelope().unwrap(), &headers)
        };
        let (region, flag) = ("mcp-param-region", "mcp-param-flag");
        for (arguments, lines) in [
            ("{}", vec![]),
            (r#"{"region":null,"other":1}"#, vec![(region, "x")]),
            (r#"{"region":"x"}"#, vec![(region, " x "), (flag, "true")]),
            (r#"{"region":"Zürich"}"#, vec![(region, "=?base64?WsO8cmljaA==?=")]),
            (r#"{"region":"eA=="}"#, vec![(region, "eA==")]),
            (r#"{"flag":true,"deep":{"n":1e3}}"#, vec![(flag, "true"), ("mcp-param-n", "1000.0")]),
        ] {
            assert!(!disagree(arguments, &lines), "{arguments} {lines:?}");
        }
        for (arguments, lines) in [
            (r#"{"region":"x"}"#, vec![]),
            (r#"{"region":"x"}"#, vec![(region, "y")]),
            (r#"{"region":"x"}"#, vec![(region, "x"), (region, "x")]),
            (r#"{"region":"x"}"#, vec![(region, "=?base64?eA?=")]),
            (r#"{"flag":true}"#, vec![(flag, "false")]),
            (r#"{"deep":{"n":1}}"#, vec![("mcp-param-n", "2")]),
        ] {
            assert!(disagree(arguments, &lines), "{arguments} {lines:?}");
        }
    }

    #[test]
    fn a_later_list_replaces_what_was_known() {
        let mut params = MirroredParams::default();
        params.learn_tools(LIST.as_bytes());
        params.learn_tools(br#"{"tools":[{"name":"query","inputSchema":{}}]}"#);
        assert!(mirrored(&params, r#"{"region":"x"}"#).is_empty());
    }
}
