//! A recorded bash session as a tape: each command becomes a tool call and its answer.
//!
//! The handshake and the tool list are synthetic, so that the tape can be played and converted.
//! Members of an entry that are neither arguments nor results are kept in its answer under `bash`.

use std::borrow::Cow;

use super::FORMAT_VERSION;
use super::entry_writer::ByteSink;
use super::line::{EntryTime, MessageLine, TapeFooter, TapeHeader};
use crate::frame::{request_text, result_text};
use crate::json::{self, JsonObject};
use crate::side::Side;
use crate::time::{SubSecond, read_rfc3339, write_rfc3339};

/// The commands of a bash session.
#[derive(Debug, Default)]
pub struct BashSession {
    entries: Vec<BashEntry>,
}

/// Why a line is not an entry of a bash session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BashSessionFault {
    #[error("not JSON: {0}")]
    NotJson(#[from] json::JsonFault),
    /// A key is missing or has the wrong type.
    #[error("`{0}` is missing or invalid")]
    Key(&'static str),
}

#[derive(Debug)]
struct BashEntry {
    number: u64,
    started_us: i64,
    duration_ms: u64,
    text: Vec<u8>,
}

/// One command of a bash session, as a tool call and its answer.
#[derive(Debug)]
pub struct BashCommand(BashEntry);

impl BashCommand {
    /// Reads an entry of a bash session.
    pub fn read(line: &[u8]) -> Result<Self, BashSessionFault> {
        BashEntry::read(line).map(Self)
    }

    /// The tool that is called.
    pub fn tool(&self) -> &'static str {
        TOOL
    }

    /// The arguments of the call.
    pub fn arguments(&self) -> Vec<u8> {
        self.0.object(&ARGUMENTS)
    }

    /// The result of the call.
    pub fn result(&self) -> Vec<u8> {
        self.0.object(&RESULT)
    }

    /// When it began, in microseconds since 1970.
    pub fn started_us(&self) -> i64 {
        self.0.started_us
    }

    /// When it ended.
    pub fn ended_us(&self) -> i64 {
        self.0.ended_us()
    }

    /// How long it took.
    pub fn duration_ms(&self) -> u64 {
        self.0.duration_ms
    }
}

/// The tool that runs commands.
const TOOL: &str = "bash_recorder.execute";
/// The protocol revision of the synthetic handshake.
const REVISION: &str = "2025-06-18";
const DESCRIPTION: &str = "Execute a bash command. It is recorded.";
/// The members of an entry that are arguments of the call, with their names there.
const ARGUMENTS: [(&str, &str); 4] = [
    ("command", "command"),
    ("timeout_seconds", "timeout"),
    ("working_directory", "working_directory"),
    ("description", "description"),
];
/// The members of an entry that are part of the result, with their names there.
const RESULT: [(&str, &str); 7] = [
    ("stdout", "stdout"),
    ("stderr", "stderr"),
    ("exit_code", "exit_code"),
    ("timed_out", "timed_out"),
    ("duration_ms", "duration_ms"),
    ("entry_id", "recording_id"),
    ("working_directory", "working_directory"),
];

impl BashSession {
    /// Whether a line is an entry of a bash session, by its keys.
    pub fn is_entry(line: &[u8]) -> bool {
        json::member(line, "entry_id").is_some() && json::member(line, "command").is_some()
    }

    /// Adds a line.
    pub fn push(&mut self, line: &[u8]) -> Result<(), BashSessionFault> {
        self.entries.push(BashEntry::read(line)?);
        Ok(())
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the session as a thoughtjack tape. The file has entries in the order they ended, the
    /// tape in the order they began.
    pub fn write(mut self, tool_version: &str, tape: &mut impl ByteSink) {
        self.entries.sort_by_key(|entry| entry.number);
        let first = self.entries.first();
        let started_us = first.map_or(0, |entry| entry.started_us);
        let session = first.and_then(|entry| json::member(&entry.text, "session_id"));
        let header = TapeHeader {
            version: FORMAT_VERSION.into(),
            name: session.and_then(json::string).map(|name| Cow::Owned(name.into_owned())),
            tags: Vec::new(),
            recorded_at: stamp(started_us).into(),
            upstream: "bash_recorder".into(),
            tool_version: tool_version.into(),
            extra: Vec::new(),
        };
        header.write(tape);
        let mut out = TapeOutput { tape, seq: 0, counts: (0, 0) };
        out.write_handshake(started_us);
        let mut ended_us = started_us;
        for (index, entry) in self.entries.iter().enumerate() {
            out.command(index as u64 + 3, entry);
            ended_us = ended_us.max(entry.ended_us());
        }
        let footer = TapeFooter {
            total_messages: out.seq,
            duration_ms: u64::try_from((ended_us - started_us) / 1000).unwrap_or(0),
            client_messages: out.counts.0,
            server_messages: out.counts.1,
            extra: Cow::Borrowed(b""),
        };
        footer.write(tape);
    }
}

impl BashEntry {
    fn read(line: &[u8]) -> Result<Self, BashSessionFault> {
        let text = json::check(line)?;
        let number = |key: &'static str| {
            let text = json::member(text, key).and_then(|text| std::str::from_utf8(text).ok());
            text.and_then(|text| text.parse().ok()).ok_or(BashSessionFault::Key(key))
        };
        let string = |key: &'static str| {
            json::member(text, key).and_then(json::string).ok_or(BashSessionFault::Key(key))
        };
        // An entry without a command would become a call without arguments.
        string("command")?;
        let started_us =
            read_rfc3339(&string("timestamp")?).ok_or(BashSessionFault::Key("timestamp"))?;
        let (number, duration_ms) = (number("sequence_number")?, number("duration_ms")?);
        Ok(Self { number, started_us, duration_ms, text: text.to_vec() })
    }

    fn ended_us(&self) -> i64 {
        let took_us = self.duration_ms.saturating_mul(1000);
        self.started_us.saturating_add(i64::try_from(took_us).unwrap_or(i64::MAX))
    }

    /// The given members under other names, as an object.
    fn object(&self, names: &[(&str, &str)]) -> Vec<u8> {
        let mut out = JsonObject::new();
        for (name, meant) in names {
            let Some(value) = json::member(&self.text, name) else { continue };
            // The tool's schema wants a string, and null means that none was given.
            if *name == "description" && value == b"null" {
                continue;
            }
            out = out.raw(meant, value);
        }
        out.finish()
    }

    /// The members that belong neither to the arguments nor to the result.
    fn rest(&self) -> Vec<u8> {
        let known = |name: &str| {
            // The id is part of the result under another name, so it is kept under its own here
            // too.
            ARGUMENTS.iter().chain(&RESULT).any(|(known, _)| *known == name) && name != "entry_id"
        };
        // The text was validated when it was read.
        let members = json::members(&self.text).flatten();
        let others = members.filter(|(key, _)| !known(&key.decode()));
        let rest = others.fold(JsonObject::new(), |rest, (key, value)| rest.copy(key, value));
        JsonObject::new().object("bash", rest).into_members()
    }
}

/// The tape being written.
struct TapeOutput<'a, S> {
    tape: &'a mut S,
    seq: u64,
    counts: (u64, u64),
}

impl<S: ByteSink> TapeOutput<'_, S> {
    fn write_handshake(&mut self, at_us: i64) {
        let revision = || JsonObject::new().text("protocolVersion", REVISION);
        let client = r#"{"name":"bash-session","version":"1.0.0"}"#;
        let hello = revision().raw("capabilities", "{}").raw("clientInfo", client);
        let server = r#"{"name":"bash_recorder","version":"1.0.0"}"#;
        let answer = revision().raw("capabilities", r#"{"tools":{}}"#).raw("serverInfo", server);
        self.write_request(1, "initialize", &hello.finish(), at_us);
        self.write_answer(1, &answer.finish(), at_us, 0, Vec::new());
        let ready = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.message(Side::Client, ready, at_us, None, Vec::new());
        let schema = r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"},"working_directory":{"type":"string"},"description":{"type":"string"}},"required":["command"]}"#;
        let tool = JsonObject::new().text("name", TOOL).text("description", DESCRIPTION);
        let tool = tool.raw("inputSchema", schema).finish();
        let list = JsonObject::new().raw("tools", json::array([tool])).finish();
        self.write_request(2, "tools/list", b"{}", at_us);
        self.write_answer(2, &list, at_us, 0, Vec::new());
    }

    fn command(&mut self, id: u64, entry: &BashEntry) {
        let arguments = entry.object(&ARGUMENTS);
        let params = JsonObject::new().text("name", TOOL).raw("arguments", arguments);
        self.write_request(id, "tools/call", &params.finish(), entry.started_us);
        let result = entry.object(&RESULT);
        let text = String::from_utf8_lossy(&result);
        let text = JsonObject::new().text("type", "text").text("text", &text).finish();
        let answer = JsonObject::new().raw("content", json::array([text]));
        let answer = answer.raw("structuredContent", &result).finish();
        self.write_answer(id, &answer, entry.ended_us(), entry.duration_ms, entry.rest());
    }

    fn write_request(&mut self, id: u64, method: &str, params: &[u8], at_us: i64) {
        let msg = request_text(id.to_string().as_bytes(), method, Some(params));
        self.message(Side::Client, &msg, at_us, None, Vec::new());
    }

    fn write_answer(
        &mut self,
        id: u64,
        result: &[u8],
        at_us: i64,
        latency_ms: u64,
        extra: Vec<u8>,
    ) {
        let msg = result_text(id.to_string().as_bytes(), result);
        self.message(Side::Server, &msg, at_us, Some(latency_ms), extra);
    }

    fn message(
        &mut self,
        from: Side,
        msg: &[u8],
        at_us: i64,
        latency_ms: Option<u64>,
        extra: Vec<u8>,
    ) {
        self.seq += 1;
        *(if from == Side::Client { &mut self.counts.0 } else { &mut self.counts.1 }) += 1;
        let line = MessageLine {
            seq: Some(self.seq),
            latency_ms,
            extra,
            ..MessageLine::minimal(EntryTime::At(at_us), from, json::compact(msg))
        };
        line.write_thoughtjack(self.tape);
    }
}

fn stamp(at_us: i64) -> String {
    let mut text = Vec::new();
    write_rfc3339(&mut text, at_us, SubSecond::Micros);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{TapeAudit, TapeLine, TapeReader, TapeSeverity};

    const ENTRY: &str = r#"{"entry_id":"e_20250115_143052_NNN","session_id":"20250115_143052_a7b3c9d2-e4f5","sequence_number":NNN,"timestamp":"2025-01-15T14:30:52.123456Z","duration_ms":1523,"command":"git status","description":null,"working_directory":"/srv","shell":"/bin/bash","timeout_seconds":120,"timed_out":false,"exit_code":0,"stdout":"On \"branch\"\n","stderr":"","output_truncated":false,"output_truncated_bytes":null,"environment":null,"agent_id":"a","conversation_id":null,"tool_call_id":"t","opencuff_version":"0.1.0","plugin_version":"1.0.0"}"#;

    fn tape(numbers: &[u64]) -> String {
        let mut session = BashSession::default();
        for number in numbers {
            let line = ENTRY.replace("NNN", &number.to_string());
            assert!(BashSession::is_entry(line.as_bytes()));
            session.push(line.as_bytes()).unwrap();
        }
        let mut out = Vec::new();
        session.write("v", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_session_is_a_tape_without_fault_in_the_order_of_its_commands() {
        let text = tape(&[2, 1]);
        let (mut reader, mut audit) = (TapeReader::new(text.as_bytes()), TapeAudit::default());
        while let Some(line) = reader.next() {
            audit.line(&line);
        }
        let (findings, _) = audit.finish();
        assert!(
            findings.iter().all(|finding| finding.severity == TapeSeverity::Note),
            "{findings:?}"
        );
        let places: Vec<_> =
            ["e_20250115_143052_1", "e_20250115_143052_2"].map(|id| text.find(id).unwrap()).into();
        assert!(places.is_sorted());
        assert!(text.contains(
            r#""latency_ms":1523,"bash":{"entry_id":"e_20250115_143052_1","session_id""#
        ));
        assert!(text.contains(
            r#""arguments":{"command":"git status","timeout":120,"working_directory":"/srv"}}"#
        ));
        assert!(text.contains(r#""upstream":"bash_recorder""#));
    }

    #[test]
    fn what_is_no_entry_is_told() {
        let mut session = BashSession::default();
        assert!(session.push(b"{\"command\":\"x\"").is_err());
        let line = ENTRY.replace("\"sequence_number\":NNN", "\"sequence_number\":\"x\"");
        assert_eq!(session.push(line.as_bytes()), Err(BashSessionFault::Key("sequence_number")));
        assert!(session.is_empty());
        let message = br#"{"type":"message","seq":1}"#;
        assert!(!BashSession::is_entry(message) && TapeLine::read(message).is_err());
    }
}
