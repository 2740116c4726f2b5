//! One finished command, as a line of a session.
//!
//! The keys of the document come first, in its order. Keys of our own follow, and only where they
//! say something.

use serde_json::{Map, Value, json};

use super::session_id::timestamp;

/// The version of the format that the document describes.
pub const PLUGIN_VERSION: &str = "1.0.0";
/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A finished command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordingEntry {
    pub entry_id: String,
    pub session_id: String,
    /// Its place in the session, by start.
    pub sequence_number: u64,
    /// When it was started.
    pub started_us: i64,
    /// How long it took.
    pub duration_ms: u64,
    /// The command line.
    pub command: String,
    /// What the caller says it is for.
    pub description: Option<String>,
    /// Where it ran.
    pub working_directory: String,
    pub shell: String,
    /// How long it was allowed to take.
    pub timeout_seconds: u64,
    /// Whether it took longer.
    pub timed_out: bool,
    /// The exit code, unless it was ended.
    pub exit_code: Option<i32>,
    pub output: EntryOutput,
    /// The environment, if it is recorded.
    pub environment: Option<Map<String, Value>>,
    /// Who called.
    pub context: AgentContext,
    /// What the document has no keys for.
    pub facts: EntryFacts,
}

/// The output of a command, as it is recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EntryOutput {
    /// Standard output, unless output is not recorded.
    pub stdout: Option<RecordedStream>,
    /// Standard error.
    pub stderr: Option<RecordedStream>,
    /// How long the streams were.
    pub total_bytes: [u64; 2],
}

/// The recorded part of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedStream {
    /// The text. Bytes that are not UTF-8 are U+FFFD.
    pub text: String,
    /// The exact bytes, if the text is not exact.
    pub exact: Option<Vec<u8>>,
    /// Whether the stream was longer.
    pub is_truncated: bool,
}

/// Who called, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentContext {
    pub agent_id: Option<String>,
    pub conversation_id: Option<String>,
    pub tool_call_id: Option<String>,
    /// The trace that the call belongs to.
    pub trace_id: Option<String>,
}

/// Facts that are recorded only where they say something.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EntryFacts {
    /// The signal that ended the shell.
    pub signal: Option<String>,
    /// Whether the call was cancelled.
    pub cancelled: bool,
    /// Whether the server ended before the command.
    pub interrupted: bool,
    /// Whether the caller did not wait for it.
    pub background: bool,
    /// Whether processes that it started were still running.
    pub background_children: bool,
}

impl RecordedStream {
    /// The recorded part of a stream, from its first bytes.
    pub fn new(head: &[u8], is_truncated: bool) -> Self {
        let whole = match is_truncated {
            // A character that is cut in half is not an error of the command's.
            true => &head[..head.len() - unfinished_bytes(head)],
            false => head,
        };
        match std::str::from_utf8(whole) {
            Ok(text) => Self { text: text.to_owned(), exact: None, is_truncated },
            Err(_) => Self {
                text: String::from_utf8_lossy(whole).into_owned(),
                exact: Some(head.to_vec()),
                is_truncated,
            },
        }
    }
}

/// How many bytes at the end begin a character that is not complete.
pub(crate) fn unfinished_bytes(bytes: &[u8]) -> usize {
    // No character has more than four bytes, so the rest cannot matter.
    let start = bytes.len().saturating_sub(4);
    match bytes[start..].utf8_chunks().last() {
        Some(chunk) => {
            let rest = chunk.invalid();
            // Only what the end of the bytes has cut: the first byte says how many belong to it.
            let length = match rest.first() {
                Some(0xc2..=0xdf) => 2,
                Some(0xe0..=0xef) => 3,
                Some(0xf0..=0xf4) => 4,
                _ => 0,
            };
            if rest.len() < length { rest.len() } else { 0 }
        }
        None => 0,
    }
}

impl RecordingEntry {
    /// Whether output is missing in the entry.
    pub fn is_truncated(&self) -> bool {
        self.streams().any(|stream| stream.is_truncated)
    }

    fn streams(&self) -> impl Iterator<Item = &RecordedStream> {
        [&self.output.stdout, &self.output.stderr].into_iter().flatten()
    }

    /// The line, without its line feed.
    pub fn to_json(&self) -> Value {
        let EntryOutput { stdout, stderr, total_bytes } = &self.output;
        let truncated = [stdout, stderr].into_iter().zip(total_bytes);
        let truncated =
            truncated.filter(|(stream, _)| stream.as_ref().is_some_and(|it| it.is_truncated));
        let text = |stream: &Option<RecordedStream>| stream.as_ref().map(|it| it.text.clone());
        let mut entry = json!({
            "entry_id": self.entry_id,
            "session_id": self.session_id,
            "sequence_number": self.sequence_number,
            "timestamp": timestamp(self.started_us),
            "duration_ms": self.duration_ms,
            "command": self.command,
            "description": self.description,
            "working_directory": self.working_directory,
            "shell": self.shell,
            "timeout_seconds": self.timeout_seconds,
            "timed_out": self.timed_out,
            "exit_code": self.exit_code,
            "stdout": text(stdout),
            "stderr": text(stderr),
            "output_truncated": self.is_truncated(),
            "output_truncated_bytes": truncated.map(|(_, total)| *total).max(),
            "environment": self.environment,
            "agent_id": self.context.agent_id,
            "conversation_id": self.context.conversation_id,
            "tool_call_id": self.context.tool_call_id,
            "opencuff_version": VERSION,
            "plugin_version": PLUGIN_VERSION,
        });
        if let Value::Object(entry) = &mut entry {
            self.add_extensions(entry);
        }
        entry
    }

    fn add_extensions(&self, entry: &mut Map<String, Value>) {
        let EntryOutput { stdout, stderr, total_bytes } = &self.output;
        for (name, stream, total) in
            [("stdout", stdout, total_bytes[0]), ("stderr", stderr, total_bytes[1])]
        {
            // The document has one count for both streams; a reader needs to know which one was
            // cut.
            entry.insert(format!("{name}_bytes"), total.into());
            let exact = stream.as_ref().and_then(|stream| stream.exact.as_deref());
            let exact = exact.map(tapegate_core::tape::base64_encode);
            exact.into_iter().for_each(|it| _ = entry.insert(format!("{name}_base64"), it.into()));
        }
        let EntryFacts { signal, cancelled, interrupted, background, background_children } =
            &self.facts;
        let trace_id = &self.context.trace_id;
        for (name, text) in [("signal", signal), ("trace_id", trace_id)] {
            text.iter().for_each(|text| _ = entry.insert(name.to_owned(), text.clone().into()));
        }
        for (name, flag) in [
            ("cancelled", cancelled),
            ("interrupted", interrupted),
            ("background", background),
            ("background_children", background_children),
        ] {
            if *flag {
                entry.insert(name.to_owned(), true.into());
            }
        }
        entry.insert("recorder".to_owned(), format!("tapegate/{VERSION}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_keys_of_the_document_in_their_order() {
        let entry = RecordingEntry { sequence_number: 1, ..RecordingEntry::default() };
        let Value::Object(entry) = entry.to_json() else { panic!("not an object") };
        let keys: Vec<&str> = entry.keys().map(String::as_str).collect();
        let documented = "entry_id session_id sequence_number timestamp duration_ms command \
            description working_directory shell timeout_seconds timed_out exit_code stdout stderr \
            output_truncated output_truncated_bytes environment agent_id conversation_id \
            tool_call_id opencuff_version plugin_version";
        assert_eq!(
            keys[..22].join(" "),
            documented.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        assert_eq!(keys[22..], ["stdout_bytes", "stderr_bytes", "recorder"]);
        assert!(entry["stdout"].is_null() && entry["exit_code"].is_null());
    }

    #[test]
    fn a_cut_stream_ends_at_a_character_and_names_its_length() {
        let whole = "aé".as_bytes();
        let cut = RecordedStream::new(&whole[..2], true);
        assert_eq!((cut.text.as_str(), &cut.exact), ("a", &None));
        for (text, expected) in
            [("é", 1), ("€", 1), ("€", 2), ("😀", 3), ("a", 0)].map(|(text, cut)| (text, cut))
        {
            let bytes = &text.as_bytes()[..expected.max(1).min(text.len())];
            assert_eq!(unfinished_bytes(bytes), expected, "{text}");
        }
        assert_eq!(unfinished_bytes(b"ab\xff"), 0);
        let output = EntryOutput {
            stdout: Some(cut),
            stderr: Some(RecordedStream::new(b"", false)),
            total_bytes: [5000, 9000],
        };
        let entry = RecordingEntry { output, ..RecordingEntry::default() }.to_json();
        assert_eq!(entry["output_truncated_bytes"], 5000);
        assert_eq!(entry["output_truncated"], true);
    }

    #[test]
    fn bytes_that_are_not_text_are_kept_exactly() {
        let stream = RecordedStream::new(b"a\xff\x00b", false);
        assert_eq!(stream.text, "a\u{fffd}\0b");
        let output = EntryOutput { stdout: Some(stream), ..EntryOutput::default() };
        let entry = RecordingEntry { output, ..RecordingEntry::default() }.to_json();
        assert_eq!(entry["stdout_base64"], "Yf8AYg==");
        assert!(entry.get("stderr_base64").is_none());
    }
}
