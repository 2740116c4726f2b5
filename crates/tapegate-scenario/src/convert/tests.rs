//! A converted scenario gives the recorded answers, by request and by order.

mod large;
mod phases;
mod roundtrips;
mod rules;

use std::collections::HashMap;
use std::io;

use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeReader;
use tapegate_core::tape::index::{BodySource, Index, Indexer};

use super::*;
use crate::emit;
use crate::files::{FileError, Files, OpenedFile};
use crate::finding::Severity;
use crate::load::{self, LoadOptions, ScenarioFileKind, ScenarioLimits};
use crate::model::{AnswerSource, ReplyOutcome, Scenario, ScenarioItem, ScenarioReply};

/// A tape built message by message.
#[derive(Default)]
struct TestTape {
    lines: String,
    seq: u64,
    ids: u64,
}

impl TestTape {
    fn new() -> Self {
        let header = r#"{"type":"header","version":"1.0","recorded_at":"2025-02-04T10:00:00Z","upstream":"npx server --token [REDACTED]","thoughtjack_version":"0"}"#;
        Self { lines: format!("{header}\n"), ..Self::default() }
    }

    fn message(&mut self, dir: &str, msg: &str) {
        self.seq += 1;
        let seq = self.seq;
        self.lines += &format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2025-02-04T10:00:00.{seq:06}Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
        );
    }

    fn client(mut self, msg: &str) -> Self {
        self.message("c2s", msg);
        self
    }

    fn server(mut self, msg: &str) -> Self {
        self.message("s2c", msg);
        self
    }

    /// Adds a request without an answer.
    fn ask(mut self, method: &str, params: &str) -> Self {
        self.ids += 1;
        let id = self.ids;
        self.message(
            "c2s",
            &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
            ),
        );
        self
    }

    /// Adds the answer to the last request: `"result":{…}` or `"error":{…}`.
    fn give(mut self, outcome: &str) -> Self {
        let id = self.ids;
        self.message("s2c", &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}"));
        self
    }

    fn hello(self) -> Self {
        self.ask("initialize", r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#)
            .give(r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"files","version":"2.1"}}"#)
            .client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }

    fn tools(self, names: &[&str]) -> Self {
        let tools: Vec<String> = names
            .iter()
            .map(|name| format!(r#"{{"name":"{name}","description":"The tool {name}","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}}}},"required":["path"]}}}}"#))
            .collect();
        self.ask("tools/list", "{}").give(&format!(r#""result":{{"tools":[{}]}}"#, tools.join(",")))
    }

    fn call(self, name: &str, text: &str) -> Self {
        self.ask("tools/call", &format!(r#"{{"name":"{name}","arguments":{{"path":"/{text}"}}}}"#))
            .give(&format!(r#""result":{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
    }
}

struct TestBodies(Vec<u8>);

impl BodySource for TestBodies {
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]> {
        Ok(&self.0[offset as usize..offset as usize + length as usize])
    }
}

#[derive(Default)]
struct TestAssets(HashMap<String, Vec<u8>>);

impl AssetSink for TestAssets {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<String> {
        let path = format!("s.yaml.assets/{name}");
        assert!(self.0.insert(path.clone(), bytes.to_vec()).is_none());
        Ok(path)
    }
}

impl Files for TestAssets {
    fn open(&self, path: &str, _: usize) -> Result<OpenedFile, FileError> {
        self.open_within("", path, 0)
    }

    fn open_within(&self, _: &str, path: &str, _: usize) -> Result<OpenedFile, FileError> {
        let bytes = self.0.get(path).ok_or(FileError::Missing)?.clone();
        Ok(OpenedFile { path: path.to_owned(), bytes })
    }

    fn folder_of(&self, _: &str) -> String {
        ".".to_owned()
    }

    fn variable(&self, _: &str) -> Option<String> {
        Some("from the environment".to_owned())
    }
}

const SIMPLE: ConversionOptions<'static> = ConversionOptions {
    style: ScenarioStyle::Simple,
    phase_after: None,
    strict: false,
    session: None,
    match_arguments: false,
    tape: "session.jsonl",
    name: None,
    schema: None,
    inline_bytes_max: 16 << 10,
    bytes_max: 8 << 20,
    sequences_in_files: false,
    mask: &str::to_owned,
    progress: &|_, _| (),
};
const PHASED: ConversionOptions<'static> =
    ConversionOptions { style: ScenarioStyle::Phased, ..SIMPLE };
const STRICT: ConversionOptions<'static> = ConversionOptions { strict: true, ..SIMPLE };

/// The result of a conversion.
struct TestConversion {
    text: String,
    summary: ConversionSummary,
    scenario: Scenario,
    files: TestAssets,
}

fn index(text: &str) -> Index {
    let mut indexer = Indexer::new(Signer::default());
    let mut reader = TapeReader::new(text.as_bytes());
    while let Some(line) = reader.next() {
        indexer.push(&line.unwrap());
    }
    indexer.finish().0
}

/// Converts a tape and loads the result, which must have no errors.
#[track_caller]
fn made(tape: &TestTape, options: &ConversionOptions<'_>) -> TestConversion {
    let mut files = TestAssets::default();
    let mut bodies = TestBodies(tape.lines.clone().into_bytes());
    let index = index(&tape.lines);
    let ConvertedTape { document, summary } =
        convert(&index, &mut bodies, &mut files, options).unwrap();
    let mut text = emit::write(&document);
    assert_eq!(emit::check_roundtrip(&document, &text), Ok(()), "{text}");
    if options.strict {
        text = text.replace('$', "$$");
    }
    files.0.insert("s.yaml".to_owned(), text.clone().into_bytes());
    let limits = ScenarioLimits::default();
    let how =
        LoadOptions { files: &files, library: None, limits, form: ScenarioFileKind::Scenario };
    let loaded = match options.strict {
        true => load::load_strict_001("s.yaml", &how),
        false => load::load("s.yaml", &how),
    };
    let errors: Vec<_> =
        loaded.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    TestConversion { text, summary, scenario: loaded.scenario.unwrap(), files }
}

/// The answers of an item in order, as JSON: a result, an error, or null.
fn answers(item: &ScenarioItem) -> Vec<serde_json::Value> {
    let replies: Vec<&ScenarioReply> = match &item.response.otherwise {
        AnswerSource::Reply(reply) => vec![reply],
        AnswerSource::Sequence(sequence) => sequence.replies.iter().collect(),
        _ => Vec::new(),
    };
    replies.into_iter().map(answer).collect()
}

fn answer(reply: &ScenarioReply) -> serde_json::Value {
    let json = |form: &crate::template::JsonTemplate| {
        let mut text = Vec::new();
        for piece in &form.pieces {
            match piece {
                crate::template::TemplatePiece::Json(json) => text.extend_from_slice(json),
                other => panic!("{other:?}"),
            }
        }
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()
    };
    match &reply.outcome {
        ReplyOutcome::Result(form) => serde_json::json!({ "result": json(form) }),
        ReplyOutcome::Error(form) => serde_json::json!({ "error": json(form) }),
        ReplyOutcome::Silence => serde_json::Value::Null,
    }
}

fn texts(item: &ScenarioItem) -> Vec<String> {
    let text = |answer: serde_json::Value| {
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    answers(item).into_iter().map(text).collect()
}

fn tool<'s>(items: &'s [std::rc::Rc<ScenarioItem>], name: &str) -> &'s ScenarioItem {
    items.iter().find(|item| item.name == name).unwrap_or_else(|| panic!("no {name}"))
}
