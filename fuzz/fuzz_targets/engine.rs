//! Whatever clients send, and whenever: an engine answers in JSON and finishes.
#![no_main]

use std::rc::Rc;

use libfuzzer_sys::fuzz_target;
use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::json;
use tapegate_core::time::Timestamp;
use tapegate_scenario::engine::{Engine, EngineSetup};
use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::load::{LoadOptions, ScenarioFileKind, ScenarioLimits, load};
use tapegate_scenario::model::Scenario;

const SCENARIO: &str = r#"
server: {name: s, version: "1", page_size: 2, state_scope: SCOPE}
baseline:
  tools:
    - tool: {name: t, description: T, inputSchema: {type: object}}
      response:
        match:
          - {when: {args.a: "*x?", "args.l[-1]": {gt: 3}}, sequence: [{content: [{type: text, text: "${args} ${fn.upper(args.a)} ${fn.len(args.l)}"}]}]}
          - {when: {args.a: {regex: "^(a|b)*$"}}, content: [{type: text, text: "${fn.truncate(fn.json(args), 9)} ${request.id}"}]}
        content: [{type: text, text: "${args.a.b[0]} ${params.name} ${tool.call_count}"}]
    - tool: {name: a, description: A, inputSchema: {type: object}}
      response:
        before: [{progress: {progress: 1}}, {send_request: {method: roots/list, as: r, timeout: 10ms}}, {wait: 5ms}]
        content: [{type: text, text: "${reply.r.roots[0].uri}"}]
    - tool: {name: h, description: H, inputSchema: {type: object}}
      behavior: {delivery: slow_loris, byte_delay_ms: 1, chunk_size: 50}
      response: {handler: {type: http, url: "http://x/"}}
  resource_templates:
    - template: {uriTemplate: "r:{a}/{+b}{?c,d}", name: R}
      response: {contents: [{text: "${uri.a} ${uri.b} ${uri.c}"}]}
phases:
  - {name: one, advance: {on: tools/call, count: 2, match: {args.a: {contains: x}}}}
  - {name: two, on_enter: [{send_notification: notifications/tools/list_changed}], advance: {on: "tools/call:t", timeout: 20ms}}
  - {name: three}
"#;

struct OneFile(String);

impl Files for OneFile {
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

thread_local! {
    static SCENARIOS: [Rc<Scenario>; 2] = ["per_connection", "global"].map(|scope| {
        let files = OneFile(SCENARIO.replace("SCOPE", scope));
        let options = LoadOptions { files: &files, library: None, limits: ScenarioLimits::default(), form: ScenarioFileKind::Scenario };
        let loaded = load("s.yaml", &options);
        let findings = &loaded.findings;
        Rc::new(loaded.scenario.unwrap_or_else(|| panic!("{findings:?}")))
    });
}

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (global, streams, bytes) = input;
    let scenario = SCENARIOS.with(|all| Rc::clone(&all[usize::from(global)]));
    let mut engine =
        Engine::new(scenario, EngineSetup { handlers: true, ..EngineSetup::default() });
    let (mut ns, mut tickets) = (0, Vec::new());
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some((kind, line)) = line.split_first() else { continue };
        let session = ActorSessionId(u32::from(kind & 1));
        let at = Timestamp { wall_us: 0, mono_ns: ns };
        let mut send = |event: ActorEvent<'_>| {
            engine.handle(at, session, event, &mut |action| match action {
                ActorAction::Say(parts) | ActorAction::Tell { parts, .. } => {
                    assert!(json::check(&parts.concat()).is_ok())
                }
                ActorAction::Run { call_id, .. } => tickets.push(call_id),
                _ => {}
            });
        };
        match kind >> 1 & 7 {
            0 => send(ActorEvent::Taken { shared: kind & 16 > 0, streams }),
            1 => send(ActorEvent::Left),
            2 => send(ActorEvent::Empty),
            3 => {
                ns += 3_000_000;
                send(ActorEvent::Due);
            }
            4 => {
                let call_id = u64::from(kind >> 4);
                send(ActorEvent::Done { call_id, outcome: Ok(line) });
            }
            _ => send(ActorEvent::Said(line)),
        }
    }
    for session in [ActorSessionId(0), ActorSessionId(1)] {
        for _ in 0..100_000 {
            let Some(due) = engine.next_wakeup(session) else { break };
            ns = ns.max(due);
            engine.handle(
                Timestamp { wall_us: 0, mono_ns: ns },
                session,
                ActorEvent::Due,
                &mut |_| (),
            );
        }
    }
});
