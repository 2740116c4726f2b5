//! The language of scenarios, and the model it is read into.

use super::*;
use crate::model::{
    AnswerSource, HandlerKind, LogLevel, LogOutput, OnSequenceEnd, ReplyOutcome, ResponseHandler,
    ScenarioAction, ScenarioItem, ScenarioReply, ScenarioScope, UnknownMethods,
};
use crate::template::{JsonTemplate, TemplatePiece};

/// Loads a text that must have no findings.
#[track_caller]
pub(super) fn good(text: &str) -> Scenario {
    finds(text, &[]).scenario.unwrap()
}

/// A JSON template with its variables as they were written.
fn shown(form: &JsonTemplate) -> String {
    let piece = |piece: &TemplatePiece| match piece {
        TemplatePiece::Json(json) => String::from_utf8_lossy(json).into_owned(),
        TemplatePiece::Text(template) => format!("<{}>", template.text),
        TemplatePiece::Generated(_) => "<generated>".to_owned(),
        TemplatePiece::Tree(_) => "<tree>".to_owned(),
    };
    form.pieces.iter().map(piece).collect()
}

fn reply(reply: &ScenarioReply) -> String {
    match &reply.outcome {
        ReplyOutcome::Result(form) => shown(form),
        ReplyOutcome::Error(form) => format!("error {}", shown(form)),
        ReplyOutcome::Silence => "silence".to_owned(),
    }
}

fn answer(answer: &AnswerSource) -> String {
    match answer {
        AnswerSource::Empty => "empty".to_owned(),
        AnswerSource::Reply(one) => reply(one),
        AnswerSource::Sequence(sequence) => {
            let replies: Vec<String> = sequence.replies.iter().map(reply).collect();
            format!("#{} {:?} {}", sequence.number, sequence.exhausted, replies.join(" then "))
        }
        AnswerSource::Handler(_) => "handler".to_owned(),
    }
}

pub(super) fn otherwise(item: &ScenarioItem) -> String {
    answer(&item.response.otherwise)
}

const TOOL: &str =
    "server: {name: s}\ntools:\n- tool: {name: t, inputSchema: {type: object}}\n  response:\n";

pub(super) fn tool(response: &str) -> String {
    let response: String = response.lines().map(|line| format!("    {line}\n")).collect();
    format!("{TOOL}{response}")
}

#[test]
fn branches_are_read_in_every_spelling() {
    let scenario = good(&tool(
        "match:\n- when: {args.a: x}\n  content: [{type: text, text: a}]\n- when: {args.b: y}\n  sequence:\n  - content: []\n  - error: {code: 1, message: m}\n  onExhausted: cycle\n- default: {content: [{type: text, text: d}]}\n",
    ));
    let branches = &scenario.baseline.tools[0].response.branches;
    let shown: Vec<String> = branches
        .iter()
        .map(|branch| format!("{} {}", branch.when.is_some(), answer(&branch.answer)))
        .collect();
    assert_eq!(
        shown,
        [
            r#"true {"content":[{"type":"text","text":"a"}]}"#,
            r#"true #0 Cycle {"content":[]} then error {"code":1,"message":"m"}"#,
            r#"false {"content":[{"type":"text","text":"d"}]}"#,
        ]
    );
    assert_eq!(otherwise(&scenario.baseline.tools[0]), "empty");
    let text = tool(
        "match:\n- default: true\n  content: []\n- when: {args.a: x}\n  content: []\n- content: []\n- when: {}\n",
    );
    finds(
        &text,
        &[
            "8:7 warning: tools[0].response.match[1]: this branch is never reached, because the default comes before it",
            "10:7 warning: tools[0].response.match[2]: this branch is never reached, because the default comes before it",
            "10:7 error: tools[0].response.match[2]: a branch needs either `when` or `default`",
            "11:7 warning: tools[0].response.match[3]: this branch is never reached, because the default comes before it",
            "11:7 error: tools[0].response.match[3]: this branch has no answer",
        ],
    );
}

#[test]
fn what_is_never_given_is_told() {
    let text = tool("content: []\nsequence: [{content: []}]\n");
    finds(
        &text,
        &[
            "5:5 warning: tools[0].response: `content` is never used, because `sequence` overrides it",
        ],
    );
    let text = tool("sequence: [{content: []}]\nhandler: {type: http, url: 'http://localhost/'}\n");
    finds(
        &text,
        &[
            "5:5 warning: tools[0].response: `sequence` is never used, because `handler` overrides it",
        ],
    );
    finds(
        &tool("on_exhausted: last\n"),
        &["5:5 error: tools[0].response: this response has no answer"],
    );
}

#[test]
fn an_error_flag_and_what_is_done_before_hold_for_a_whole_sequence() {
    let scenario = good(&tool(
        "isError: true\nbefore: [{log: x}]\nsequence:\n- content: []\n- {content: [], isError: false, before: []}\n",
    ));
    let AnswerSource::Sequence(sequence) = &scenario.baseline.tools[0].response.otherwise else {
        panic!()
    };
    assert_eq!(sequence.exhausted, OnSequenceEnd::Last);
    assert_eq!(reply(&sequence.replies[0]), r#"{"content":[],"isError":true}"#);
    assert_eq!(reply(&sequence.replies[1]), r#"{"content":[],"isError":false}"#);
    let before: Vec<usize> = sequence.replies.iter().map(|reply| reply.before.len()).collect();
    assert_eq!(before, [1, 0]);
}

#[test]
fn handlers_are_programs_or_servers() {
    let scenario = good(&tool(
        "handler: {type: command, cmd: [python3, x.py], env: {A: b}, working_dir: /tmp, timeout_ms: 500}\n",
    ));
    let AnswerSource::Handler(handler) = &scenario.baseline.tools[0].response.otherwise else {
        panic!()
    };
    let ResponseHandler { kind: HandlerKind::Command { argv, env, folder }, timeout_ns } =
        &**handler
    else {
        panic!()
    };
    assert_eq!((argv.len(), env.len(), folder.as_deref()), (2, 1, Some("/tmp")));
    assert_eq!(*timeout_ns, 500_000_000);
    finds(
        &tool("handler: {type: http, cmd: [x], timeout_ms: 5}\n"),
        &[
            "5:14 error: tools[0].response.handler: `url` is missing",
            "5:27 warning: tools[0].response.handler: `cmd` does not apply to `http`, only to `command`",
            "5:49 error: tools[0].response.handler.timeout_ms: this must be a whole number from 100 to 300000, not 5",
        ],
    );
}

#[test]
fn content_is_sent_as_it_is_written() {
    let scenario = good(&tool(
        "content:\n- {type: audio, data: AA==, mimeType: audio/wav, annotations: {priority: 0.50}}\n- {type: resource_link, uri: 'x:y', name: n, size: 12345678901234567890}\n- {type: resource, resource: {uri: 'x:y', blob: AA==}}\n",
    ));
    assert_eq!(
        otherwise(&scenario.baseline.tools[0]),
        r#"{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"priority":0.50}},{"type":"resource_link","uri":"x:y","name":"n","size":12345678901234567890},{"type":"resource","resource":{"uri":"x:y","blob":"AA=="}}]}"#
    );
    finds(
        &tool("content:\n- {type: text}\n- {type: vidoe}\n"),
        &[
            "6:7 warning: tools[0].response.content[0]: `text` content has no `text`",
            "7:7 warning: tools[0].response.content[1]: MCP has no content of type `vidoe`",
        ],
    );
}

#[test]
fn generators_stand_beside_a_type_or_under_a_key() {
    let scenario = good(&tool(
        "content:\n- type: text\n  $generate: {type: garbage, bytes: 5}\n- {type: text, text: {$generate: {type: garbage, bytes: 5}}}\n- {type: image, mimeType: image/png, $generate: {type: garbage, bytes: 5}}\n",
    ));
    assert_eq!(
        otherwise(&scenario.baseline.tools[0]),
        r#"{"content":[{"type":"text","text":<generated>},{"type":"text","text":<generated>},{"type":"image","mimeType":"image/png","data":<generated>}]}"#
    );
    let scenario = good(
        "server: {name: s}\ntools:\n- tool: {name: t, description: {$generate: {type: garbage, bytes: 5, charset: numeric}}, inputSchema: {type: object}}\n  response: {content: []}\n",
    );
    let definition = scenario.baseline.tools[0].definition.to_json();
    let definition: serde_json::Value = serde_json::from_slice(&definition).unwrap();
    assert_eq!(definition["description"].as_str().unwrap().len(), 5);
}

#[test]
fn definitions_hold_only_so_much_of_what_generators_make() {
    let one = "{tool: {name: t, description: {$generate: {type: garbage, bytes: 600}}, inputSchema: {type: object}}, response: {content: []}}";
    let text =
        format!("server: {{name: s}}\ntools:\n- {one}\n- {}\n", one.replace("name: t", "name: u"));
    let mut limits = ScenarioLimits::default();
    limits.generator.payload_bytes = 1_000;
    let loaded =
        TestFiles::default().with("main.yaml", text).load_with(limits, ScenarioFileKind::Scenario);
    assert_eq!(
        told(&loaded),
        [
            "4:45 error: tools[1].tool: generated text in definitions is over the limit of 1000 bytes"
        ]
    );
}

#[test]
fn resources_say_what_goes_without_saying() {
    let text = "server: {name: s}\nresources:\n- resource: {uri: 'a:b', name: n, mimeType: text/plain}\n- resource: {uri: 'c:d', name: n}\n  response: {content: hello}\n- resource: {uri: 'e:f', name: n, mimeType: x/y}\n  response: {contents: [{uri: g, text: t}, {mimeType: z, blob: AA==}]}\nresource_templates:\n- template: {uriTemplate: 'u:{id}', name: n}\n  response: {content: 'id ${uri.id}'}\n";
    let scenario = good(text);
    let shown: Vec<String> =
        scenario.baseline.resources.iter().map(|item| otherwise(item)).collect();
    assert_eq!(
        shown,
        [
            r#"{"contents":[{"uri":"a:b","mimeType":"text/plain","text":""}]}"#,
            r#"{"contents":[{"uri":"c:d","text":"hello"}]}"#,
            r#"{"contents":[{"mimeType":"x/y","uri":"g","text":"t"},{"uri":"e:f","mimeType":"z","blob":"AA=="}]}"#,
        ]
    );
    let template = &scenario.baseline.templates[0];
    assert_eq!(template.name, "u:{id}");
    assert_eq!(
        otherwise(template),
        r#"{"contents":[{"uri":<${resource.uri}>,"text":<id ${uri.id}>}]}"#
    );
    let literal = finds(&format!("interpolate: none\n{text}"), &[]).scenario.unwrap();
    assert_eq!(
        otherwise(&literal.baseline.templates[0]),
        r#"{"contents":[{"uri":<${resource.uri}>,"text":"id ${uri.id}"}]}"#
    );
}

#[test]
fn payloads_are_generated_where_only_what_we_add_has_templates() {
    let text = "interpolate: none\nserver: {name: s}\nresource_templates:\n- template: {uriTemplate: 'u:{id}', name: n}\n  response: {contents: [{text: {$generate: {type: garbage, bytes: 3}}}]}\n";
    assert!(finds(text, &[]).scenario.is_some());
}

#[test]
fn nothing_may_stand_under_the_keys_of_mcp() {
    let scenario = good(
        "server: {name: s}\ntools:\n- tool: {name: t, description: null, annotations: ~, inputSchema: {type: object}}\n  response: {content: [{type: text, text: a, mimeType: null}]}\nresources:\n- resource: {uri: u, name: n, mimeType: null}\n",
    );
    assert_eq!(
        scenario.baseline.tools[0].definition.to_json(),
        br#"{"name":"t","description":null,"annotations":null,"inputSchema":{"type":"object"}}"#
    );
    assert_eq!(
        otherwise(&scenario.baseline.resources[0]),
        r#"{"contents":[{"uri":"u","text":""}]}"#
    );
    finds(
        "server: {name: s, capabilities: {tools: null}}\ntools:\n- tool: {name: null, inputSchema: {type: object}}\n  response: {content: null}\n",
        &[
            "1:41 error: server.capabilities.tools: this must be a map, but it is nothing",
            "3:16 error: tools[0].tool.name: this must be text, but it is nothing",
            "4:23 error: tools[0].response.content: this must be a list, but it is nothing",
        ],
    );
}

#[test]
fn settings_of_another_kind_are_told() {
    finds(
        "server: {name: s}\nbehavior: {delivery: slow_loris, depth: 5, byte_delay_ms: 1, side_effects: [{type: pipe_deadlock, count: 3}]}\n",
        &[
            "2:34 warning: behavior: `depth` does not apply to `slow_loris`, only to `nested_json`",
            "2:99 warning: behavior.side_effects[0]: `count` does not apply to `pipe_deadlock`, only to `duplicate_request_ids`",
        ],
    );
    finds(
        &tool("handler: {type: http, url: 'http://x/', cmd: [a]}\n"),
        &[
            "5:45 warning: tools[0].response.handler: `cmd` does not apply to `http`, only to `command`",
        ],
    );
}

#[test]
fn prompts_take_text_for_short() {
    let text = "server: {name: s}\nprompts:\n- prompt: {name: p, arguments: [{name: a, required: true}]}\n  response:\n    description: d\n    messages:\n    - {role: user, content: 'hi ${args.a}'}\n    - {role: assistant, content: {type: text, text: x}}\n";
    let scenario = good(text);
    let prompt = &scenario.baseline.prompts[0];
    assert_eq!(
        otherwise(prompt),
        r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":<hi ${args.a}>}},{"role":"assistant","content":{"type":"text","text":"x"}}]}"#
    );
    assert_eq!(
        prompt.definition.to_json(),
        br#"{"name":"p","arguments":[{"name":"a","required":true}]}"#
    );
}

#[test]
fn actions_are_read() {
    let scenario = good(&tool(
        "content: []\nbefore:\n- send_notification: notifications/tools/list_changed\n- send_notification: {method: m, params: {a: '${args.x}'}}\n- send_request: roots/list\n- send_request: {method: elicitation/create, id: 7, params: {}, as: who, timeout: 2s}\n- progress: {progress: 1, total: 2}\n- log_message: {level: info, data: {x: 1}, logger: l}\n- log: 'hello ${args.x}'\n- wait: 5ms\n",
    ));
    let AnswerSource::Reply(reply) = &scenario.baseline.tools[0].response.otherwise else {
        panic!()
    };
    let shown: Vec<String> = reply
        .before
        .iter()
        .map(|action| match action {
            ScenarioAction::Notify { method, params } => {
                format!("notify {method} {}", params.as_ref().map_or(String::new(), shown))
            }
            ScenarioAction::Ask { method, id, params, name, timeout_ns } => {
                format!(
                    "ask {method} {id:?} {} {name:?} {timeout_ns}",
                    params.as_ref().map_or(String::new(), shown)
                )
            }
            ScenarioAction::Progress(form) => format!("progress {}", shown(form)),
            ScenarioAction::Message { level, params } => {
                format!("message {level} {}", shown(params))
            }
            ScenarioAction::Log(template) => format!("log {}", template.text),
            ScenarioAction::Wait(ns) => format!("wait {ns}"),
            ScenarioAction::EndStream => "end stream".to_owned(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "notify notifications/tools/list_changed ",
            r#"notify m {"a":<${args.x}>}"#,
            "ask roots/list None  None 30000000000",
            r#"ask elicitation/create Some("7") {} Some("who") 2000000000"#,
            r#"progress {"progress":1,"total":2}"#,
            r#"message info {"level":"info","data":{"x":1},"logger":"l"}"#,
            "log hello ${args.x}",
            "wait 5000000",
        ]
    );
    finds(
        &tool("content: []\nbefore: [{log: a, wait: 1s}, {}, {wat: 1s}, {wait: 5}]\n"),
        &[
            "6:14 error: tools[0].response.before[0]: an action must have exactly one key",
            "6:34 error: tools[0].response.before[1]: an action must have exactly one key",
            "6:39 error: tools[0].response.before[2]: there is no key `wat` here; did you mean `wait`?",
            "6:56 error: tools[0].response.before[3].wait: a time needs a unit: `5ms`, `5s`, `5m` or `5h`",
        ],
    );
}

#[test]
fn the_rest_of_a_scenario_is_read() {
    let scenario = good(
        "metadata: {id: i, name: n, description: d, safe: s, severity: high, tags: [a, b], owasp: [x]}\nserver: {name: s, title: T, stateScope: global, instructions: do, protocol_versions: ['2025-06-18'], page_size: 5}\nunknown_methods: drop\nmethods:\n  x/y: {result: {a: '${request.id}'}}\n  completion/complete:\n    match:\n    - when: {argument.name: a}\n      result: {completion: {values: [b]}}\nlogging: {level: warn, on_phase_change: true, output: /tmp/x.log}\nexpect:\n- {id: e, never: {method: tools/call}}\n",
    );
    assert_eq!(scenario.about.tags, ["a", "b"]);
    assert_eq!(scenario.server.info.to_json(), br#"{"name":"s","title":"T","version":"0.0.0"}"#);
    assert_eq!(scenario.server.scope, ScenarioScope::Global);
    assert_eq!(scenario.server.protocol_versions, ["2025-06-18"]);
    assert_eq!(scenario.server.page_size, Some(5));
    assert_eq!(scenario.unknown_methods, UnknownMethods::Drop);
    assert_eq!(scenario.methods[0].0, "x/y");
    assert_eq!(answer(&scenario.methods[0].1.otherwise), r#"{"a":<${request.id}>}"#);
    assert_eq!(scenario.methods[1].1.branches.len(), 1);
    assert_eq!(scenario.logging.level, LogLevel::Warn);
    assert_eq!(scenario.logging.output, LogOutput::File("/tmp/x.log".to_owned()));
    assert_eq!(scenario.expect.len(), 1);
}

#[test]
fn interpolate_switches_variables_and_templates() {
    let text = tool("content: [{type: text, text: 'a ${HOME} $$ ${args.x}'}]\n");
    for (word, expected) in [
        ("all", r#"{"content":[{"type":"text","text":<a /home/u $ ${args.x}>}]}"#),
        ("env", r#"{"content":[{"type":"text","text":"a /home/u $ ${args.x}"}]}"#),
        ("none", r#"{"content":[{"type":"text","text":"a ${HOME} $$ ${args.x}"}]}"#),
    ] {
        for line in [
            format!("interpolate: {word}\n{text}"),
            format!("{text}interpolate: \"{word}\"  # why\n"),
        ] {
            let loaded = TestFiles::default()
                .with("main.yaml", line)
                .with_variable("HOME", "/home/u")
                .load();
            assert_eq!(told(&loaded), [""; 0]);
            assert_eq!(otherwise(&loaded.scenario.unwrap().baseline.tools[0]), expected);
        }
    }
    finds(
        "{interpolate: none, server: {name: s}}\n",
        &["1:15 error: `interpolate` must be on a line of its own, without leading spaces"],
    );
}

#[test]
fn a_tool_alone_gets_a_server() {
    let folder = TestFiles::default().with(
        "main.yaml",
        "tool: {name: calc, inputSchema: {type: object}}\nresponse: {content: []}\nbehavior: {delivery: normal}\n",
    );
    let loaded = folder.load_with(ScenarioLimits::default(), ScenarioFileKind::Tool);
    assert_eq!(told(&loaded), [""; 0]);
    let scenario = loaded.scenario.unwrap();
    assert_eq!(scenario.server.info.to_json(), br#"{"name":"calc","version":"0.0.0"}"#);
    assert_eq!(scenario.baseline.tools.len(), 1);
}

#[test]
fn variables_can_be_numbers_and_faults_stand_where_they_were_written() {
    let text = "server: {name: s}\nbaseline: {tools: []}\nphases:\n- {name: '${LONG}', advance: {on: tools/call, count: ${N}}}\n- {name: '${LONG}', x: 1}\n";
    let folder = TestFiles::default()
        .with("main.yaml", text)
        .with_variable("N", "3")
        .with_variable("LONG", "a very long name");
    assert_eq!(
        told(&folder.load()),
        [
            "5:10 error: phases[1].name: duplicate phase name `a very long name`",
            "5:21 error: phases[1]: there is no key `x` here",
        ]
    );
}

#[test]
fn what_tj_spec_001_does_not_have_is_told_when_asked_for() {
    let text = "metadata: {id: x}\nserver: {name: s, title: t}\ntools:\n- tool: {name: t, inputSchema: {type: object}, annotations: {}, other: 1}\n  response: {content: [], isError: true}\n";
    let folder = TestFiles::default().with("main.yaml", text);
    let loading = LoadOptions {
        files: &folder,
        library: None,
        limits: ScenarioLimits::default(),
        form: ScenarioFileKind::Scenario,
    };
    assert!(load("main.yaml", &loading).scenario.is_some());
    assert_eq!(
        told(&load_strict_001("main.yaml", &loading)),
        [
            "1:1 error: TJ-SPEC-001 has no `metadata` here",
            "2:19 error: server: TJ-SPEC-001 has no `title` here",
            "4:48 error: tools[0].tool: TJ-SPEC-001 has no `annotations` here",
            "4:65 error: tools[0].tool: TJ-SPEC-001 has no `other` here",
            "5:27 error: tools[0].response: TJ-SPEC-001 has no `isError` here",
        ]
    );
}

#[test]
fn a_scenario_with_nothing_but_faults_is_refused_in_time() {
    let mut text = String::from("server: {name: s}\n");
    for number in 0..200_000 {
        text += &format!("key{number}: 1\n");
    }
    let loaded = TestFiles::default().with("main.yaml", text).load();
    assert_eq!(loaded.findings.len(), 1_001);
    assert_eq!(
        told(&loaded)[1_000],
        "0:0 error: there are 199000 more errors, which are not listed"
    );
}

#[test]
fn a_very_long_name_is_probably_a_mistake() {
    let text = format!("server: {{name: {}}}\n", "x".repeat(101));
    finds(&text, &["1:16 warning: server.name: the name has more than 100 characters"]);
}
