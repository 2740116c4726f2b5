//! What one request costs an engine without any I/O, and what loading a scenario does.
//!
//! `cargo bench -p tapegate-scenario` prints nanoseconds a request, the best of many rounds, because the
//! machines this runs on are shared. For comparisons between builds, not for promises.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
#![expect(clippy::unwrap_used, reason = "a bench may fail")]

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::time::Timestamp;
use tapegate_scenario::engine::{Engine, EngineSetup};
use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::load::{LoadOptions, ScenarioFileKind, ScenarioLimits, load};
use tapegate_scenario::model::Scenario;

const SEAT: ActorSessionId = ActorSessionId(1);
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn main() {
    let (one, many) = (text(1), text(1000));
    let started = Instant::now();
    let scenario = read(&many);
    println!("{:>9.2} ms  load 1,000 tools", started.elapsed().as_secs_f64() * 1e3);
    for (name, scenario) in [("1 tool", read(&one)), ("1,000 tools", scenario)] {
        for (what, method, params) in [
            ("plain answer", "tools/call", r#""name":"plain","arguments":{"text":"hello there"}"#),
            (
                "answer with variables",
                "tools/call",
                r#""name":"echo","arguments":{"text":"hello there"}"#,
            ),
            ("sequence", "tools/call", r#""name":"row","arguments":{}"#),
            ("branches", "tools/call", r#""name":"branch","arguments":{"path":"/etc/passwd"}"#),
            ("list", "tools/list", ""),
        ] {
            ask(&format!("{what}, {name}"), &scenario, method, params.to_owned());
        }
    }
    let params = format!(r#""name":"plain","arguments":{{"text":"hello there"}},{META}"#);
    ask("plain answer without a session", &read(&one), "tools/call", params);
}

/// A scenario with so many tools besides those that are used.
fn text(count: usize) -> String {
    let mut text = String::from(
        r#"
server: {name: bench, version: "1"}
baseline:
  tools:
    - tool: {name: plain, description: Plain, inputSchema: {type: object, properties: {text: {type: string}}}}
      response: {content: [{type: text, text: "hello there"}]}
    - tool: {name: echo, description: Echo, inputSchema: {type: object, properties: {text: {type: string}}}}
      response: {content: [{type: text, text: "You said ${args.text}, for the ${tool.call_count}. time"}]}
    - tool: {name: row, description: Row, inputSchema: {type: object}}
      response: {on_exhausted: cycle, sequence: [{content: [{type: text, text: one}]}, {content: [{type: text, text: two}]}]}
    - tool: {name: branch, description: Branch, inputSchema: {type: object}}
      response:
        match:
          - {when: {args.path: "*.env"}, content: [{type: text, text: env}]}
          - {when: {args.path: "regex:^/etc/"}, content: [{type: text, text: etc}]}
"#,
    );
    for number in 1..count {
        text.push_str(&format!(
            "    - tool: {{name: tool_{number}, description: The tool with number {number}, inputSchema: {{type: object, properties: {{path: {{type: string}}, depth: {{type: integer}}}}}}}}\n      response: {{content: [{{type: text, text: answer {number}}}]}}\n"
        ));
    }
    text.push_str(
        "phases:\n  - {name: one, advance: {on: tools/call, count: 1000000000}}\n  - {name: two}\n",
    );
    text
}

struct SingleFile(String);

impl Files for SingleFile {
    fn open(&self, path: &str, _: usize) -> Result<OpenedFile, FileError> {
        Ok(OpenedFile { path: path.to_owned(), bytes: self.0.clone().into_bytes() })
    }

    fn open_within(&self, _: &str, _: &str, _: usize) -> Result<OpenedFile, FileError> {
        Err(FileError::Missing)
    }

    fn folder_of(&self, _: &str) -> String {
        String::new()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn read(text: &str) -> Rc<Scenario> {
    let files = SingleFile(text.to_owned());
    let limits = ScenarioLimits { tools: 10_000, ..ScenarioLimits::default() };
    let loaded = load(
        "s.yaml",
        &LoadOptions { files: &files, library: None, limits, form: ScenarioFileKind::Scenario },
    );
    Rc::new(loaded.scenario.unwrap())
}

fn ask(name: &str, scenario: &Rc<Scenario>, method: &str, params: String) {
    let mut engine = Engine::new(Rc::clone(scenario), EngineSetup::default());
    let mut bytes = 0;
    let mut act = |act: ActorAction<'_>| {
        if let ActorAction::Say(parts) = act {
            bytes += black_box(parts).iter().map(|part| part.len()).sum::<usize>();
        }
    };
    let at = Timestamp::default();
    engine.handle(at, SEAT, ActorEvent::Taken { shared: false, streams: false }, &mut act);
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":12345,"method":"{method}","params":{{{params}}}}}"#);
    measure(name, || {
        engine.handle(at, SEAT, ActorEvent::Said(black_box(line.as_bytes())), &mut act);
        black_box(engine.next_wakeup(SEAT));
    });
    assert!(bytes > 0);
}

fn measure(name: &str, mut work: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..50 {
        let started = Instant::now();
        for _ in 0..2000 {
            work();
        }
        best = best.min(started.elapsed().as_nanos() as f64 / 2000.0);
    }
    println!("{best:>9.0} ns  {name}");
}
