//! The rules for scenarios, a flat list with one test for each. The ids are those of the documents
//! that define the language.

use super::*;
use crate::model::{Delivery, OnTimeout, PhaseEvent, ReplyOutcome};

const TOOL: &str = "{tool: {name: t, inputSchema: {type: object}}, response: {content: []}}";

/// A scenario with one tool and these phases.
fn phased(phases: &str) -> String {
    format!("server: {{name: s}}\nbaseline: {{tools: [{TOOL}]}}\nphases:\n{phases}")
}

/// A scenario with one tool that has this response.
fn answering(response: &str) -> String {
    format!(
        "server: {{name: s}}\ntools:\n- tool: {{name: t, inputSchema: {{type: object}}}}\n  response:\n{response}"
    )
}

fn names(items: &[std::rc::Rc<crate::model::ScenarioItem>]) -> Vec<&str> {
    items.iter().map(|item| item.name.as_str()).collect()
}

#[test]
fn ec_cfg_001_no_phases_are_the_baseline_for_ever() {
    let text = "server: {name: s}\nbaseline: {tools: []}\nphases: []\n";
    assert!(finds(text, &[]).scenario.unwrap().phases.is_empty());
}

#[test]
fn ec_cfg_002_ec_load_003_files_that_include_each_other_are_an_error_with_the_chain() {
    let folder = TestFiles::default()
        .with("main.yaml", "server: {name: s}\ntools:\n- $include: a.yaml\n")
        .with(
            "lib/a.yaml",
            "tool: {name: t, inputSchema: {type: object}}\nresponse:\n  $include: b.yaml\n",
        )
        .with("lib/b.yaml", "content:\n- $include: a.yaml\n");
    let loaded = folder.load();
    assert_eq!(
        told(&loaded),
        [
            "lib/b.yaml:2:13 error: these files include each other: main.yaml → a.yaml → b.yaml → a.yaml"
        ]
    );
}

#[test]
fn ec_cfg_003_ec_load_004_an_include_that_is_not_there_is_told_where_it_is_named() {
    let text = "server: {name: s}\ntools:\n- $include: no.yaml\n";
    finds(text, &["3:13 error: there is no file `no.yaml` in `lib` or in `.`"]);
    let text = "server: {name: s}\ntools:\n- $include: ../no.yaml\n";
    finds(text, &["3:13 error: `../no.yaml` cannot be read: it is outside the allowed folder"]);
}

#[test]
fn ec_load_005_includes_lie_only_so_deep_in_each_other() {
    let mut folder = TestFiles::default().with("main.yaml", "$include: 0.yaml\n");
    for number in 0..20 {
        let text = format!("$include: {}.yaml\n", number + 1);
        folder = folder.with(&format!("lib/{number}.yaml"), text);
    }
    let output_text = "lib/9.yaml:1:11 error: includes are nested more than 10 deep";
    assert_eq!(told(&folder.load()), [output_text]);
}

#[test]
fn ec_cfg_004_replacing_or_removing_an_unknown_tool_is_an_error() {
    let text =
        phased(&format!("- name: a\n  remove_tools: [tx]\n  replace_tools:\n    x: {TOOL}\n"));
    finds(
        &text,
        &[
            "5:18 error: phases[0].remove_tools[0]: the baseline has no tool `tx`; did you mean `t`?",
            "7:5 error: phases[0].replace_tools.x: the baseline has no tool `x`",
        ],
    );
}

#[test]
fn ec_cfg_006_ec_load_010_ec_gen_002_a_generator_over_its_limit_is_an_error() {
    let text = answering(
        "    content:\n    - type: text\n      $generate: {type: garbage, bytes: 200mb}\n",
    );
    let loaded = TestFiles::default().with("main.yaml", text).load();
    let told = told(&loaded);
    assert!(told[0].starts_with("7:18 error: tools[0].response") && told.len() == 1, "{told:?}");
}

#[test]
fn ec_cfg_007_a_timeout_without_an_event_is_an_error() {
    let text = phased("- name: a\n  advance: {after: 1s, timeout: 5s}\n- name: b\n");
    finds(&text, &["5:33 error: phases[0].advance.timeout: `timeout` has no effect without `on`"]);
    let text = phased(
        "- name: a\n  advance: {on: tools/call, timeout: 5s, on_timeout: abort}\n- name: b\n",
    );
    let scenario = finds(&text, &[]).scenario.unwrap();
    let advance = scenario.phases[0].advance.as_ref().unwrap();
    assert_eq!(advance.timeout_ns, Some(5_000_000_000));
    assert_eq!(advance.on_timeout, OnTimeout::Abort);
}

#[test]
fn ec_cfg_008_an_unknown_event_is_an_error() {
    let text = phased("- name: a\n  advance: {on: tools/cal}\n- name: b\n");
    let loaded = TestFiles::default().with("main.yaml", text).load();
    assert!(
        told(&loaded)[0].starts_with("5:17 error: phases[0].advance.on: unknown event `tools/cal`")
    );
    let text = phased("- name: a\n  advance: {on: 'resources/read:file:///x'}\n- name: b\n");
    let scenario = finds(&text, &[]).scenario.unwrap();
    let on = scenario.phases[0].advance.as_ref().unwrap().on.clone();
    assert_eq!(on, Some(PhaseEvent::parse("resources/read:file:///x").unwrap()));
}

#[test]
fn ec_cfg_009_two_phases_of_one_name_are_an_error() {
    let text = phased("- name: a\n  advance: {after: 1s}\n- name: a\n");
    finds(&text, &["6:9 error: phases[1].name: duplicate phase name `a`"]);
}

#[test]
fn ec_cfg_010_ec_cfg_011_a_file_that_is_not_there_is_an_error() {
    let text = answering(
        "    content:\n    - {type: image, mimeType: image/png, $file: no.png}\n    - type: text\n      text: {$file: no.txt}\n",
    );
    finds(
        &text,
        &[
            "6:49 error: there is no file `no.png` in `.` or in `lib`",
            "8:21 error: there is no file `no.txt` in `.` or in `lib`",
        ],
    );
}

#[test]
fn ec_cfg_012_an_unknown_generator_is_an_error() {
    let text = answering(
        "    content:\n    - {type: text, text: {$generate: {type: garbag, bytes: 1}}}\n",
    );
    finds(
        &text,
        &[
            "6:45 error: tools[0].response.content[0].text.$generate.type: this must be `nested_json`, `batch_notifications`, `garbage`, `repeated_keys`, `unicode_spam` or `ansi_escape`, not `garbag`; did you mean `garbage`?",
        ],
    );
}

#[test]
fn ec_cfg_013_ec_phase_001_a_phase_without_a_way_out_hides_those_behind_it() {
    let text = phased("- name: a\n- name: b\n");
    finds(
        &text,
        &[
            "4:3 warning: phases[0]: the phases after `a` are never reached, because it has no `advance`",
        ],
    );
}

#[test]
fn ec_cfg_014_ec_phase_005_a_count_below_one_is_an_error() {
    for count in ["-3", "0"] {
        let text = phased(&format!(
            "- name: a\n  advance: {{on: tools/call, count: {count}}}\n- name: b\n"
        ));
        let output_text = format!(
            "5:36 error: phases[0].advance.count: this must be a whole number from 1, not {count}"
        );
        finds(&text, &[&output_text]);
    }
}

#[test]
fn ec_cfg_015_a_drip_without_a_delay_is_fine() {
    let text = "server: {name: s}\nbehavior: {delivery: slow_loris, byte_delay_ms: 0}\n";
    let scenario = finds(text, &[]).scenario.unwrap();
    let delivery = Delivery::SlowLoris { delay_ns: 0, chunk_bytes: 1 };
    assert_eq!(scenario.baseline.behavior.as_ref().unwrap().delivery, delivery);
}

#[test]
fn ec_cfg_016_the_two_forms_do_not_mix() {
    let text = format!("server: {{name: s}}\ntools: [{TOOL}]\nbaseline: {{tools: []}}\n");
    finds(
        &text,
        &["2:8 error: tools: in a scenario with `baseline`, `tools` belongs under `baseline`"],
    );
}

#[test]
fn ec_cfg_017_an_override_without_an_include_is_an_error() {
    let text = "server: {name: s}\ntools:\n- tool: {name: t, inputSchema: {type: object}}\n  response: {content: []}\n  override: {}\n";
    finds(text, &["5:3 error: tools[0]: `override` needs `$include`, which is missing"]);
    let fine = "server: {name: s}\ntools:\n- tool: {name: t, inputSchema: {type: object, properties: {override: {}}}}\n  response: {content: []}\n";
    finds(fine, &[]);
}

#[test]
fn ec_cfg_018_an_override_goes_as_deep_as_there_are_maps() {
    let folder = TestFiles::default()
        .with("main.yaml", "server: {name: s}\ntools:\n- $include: t.yaml\n  override:\n    tool: {description: new, inputSchema: {required: [b]}}\n- $include: t.yaml\n  override: {tool: {name: u}}\n")
        .with("lib/t.yaml", "tool:\n  name: t\n  description: old\n  inputSchema: {type: object, required: [a, c]}\nresponse: {content: []}\n");
    let loaded = folder.load();
    assert_eq!(told(&loaded), [""; 0]);
    let tools = loaded.scenario.unwrap().baseline.tools;
    assert_eq!(
        tools[0].definition.to_json(),
        br#"{"name":"t","description":"new","inputSchema":{"type":"object","required":["b"]}}"#
    );
    assert_eq!(tools[1].name, "u");
    assert_eq!(loaded.sources, ["main.yaml", "lib/t.yaml"]);
}

#[test]
fn ec_cfg_019_ec_cfg_020_bytes_are_no_text() {
    let folder = TestFiles::default()
        .with(
            "main.yaml",
            answering("    content:\n    - type: text\n      text: {$file: x.bin}\n"),
        )
        .with("x.bin", b"\xff\xfe".to_vec());
    let output_text = "7:21 error: `x.bin` is not UTF-8; a binary file must be `data` or `blob`";
    assert_eq!(told(&folder.load()), [output_text]);
    let folder = TestFiles::default().with("main.yaml", b"a: b\nc: \xff\n".to_vec());
    assert_eq!(told(&folder.load()), ["2:1 error: this line is not UTF-8"]);
}

#[test]
fn ec_cfg_021_ec_cfg_022_items_of_phases_are_written_out_included_or_named() {
    let phases = format!(
        "- name: a\n  advance: {{after: 1s}}\n  replace_tools: {{t: {TOOL}}}\n- name: b\n  replace_tools:\n    t: other.yaml\n  add_tools:\n  - other2.yaml\n  - $include: other.yaml\n    override: {{tool: {{name: w}}}}\n  - {}\n",
        TOOL.replace("name: t", "name: x")
    );
    let folder = TestFiles::default()
        .with("main.yaml", phased(&phases))
        .with("lib/other.yaml", TOOL.replace("name: t", "name: u"))
        .with("lib/other2.yaml", TOOL.replace("name: t", "name: v"));
    let loaded = folder.load();
    assert_eq!(told(&loaded), [""; 0]);
    let scenario = loaded.scenario.unwrap();
    assert_eq!(names(&scenario.phases[0].state.tools), ["t"]);
    assert_eq!(names(&scenario.phases[1].state.tools), ["u", "v", "w", "x"]);
}

#[test]
fn ec_cfg_023_ec_cfg_024_a_tool_has_a_behaviour_with_or_without_its_server() {
    for server in ["", "behavior: {delivery: {type: response_delay, delay_ms: 5}}\n"] {
        let text = format!(
            "{}  behavior: {{delivery: nested_json, depth: 3}}\n{server}",
            answering("    content: []\n")
        );
        let scenario = finds(&text, &[]).scenario.unwrap();
        assert_eq!(scenario.baseline.behavior.is_some(), !server.is_empty());
        let own = scenario.baseline.tools[0].behavior.as_ref().unwrap();
        assert!(matches!(own.delivery, Delivery::NestedJson { depth: 3, .. }));
    }
}

#[test]
fn ec_load_001_an_empty_file_is_an_error() {
    for text in ["", "# nothing\n", "---\n", "\u{feff}\n\n"] {
        let loaded = TestFiles::default().with("main.yaml", text).load();
        let told = told(&loaded);
        assert!(told.len() == 1 && told[0].ends_with("error: the file has no content"), "{told:?}");
    }
    let told = told(&TestFiles::default().load());
    assert_eq!(told, ["0:0 error: the file cannot be read: there is no such file"]);
}

#[test]
fn ec_load_002_what_is_no_yaml_is_an_error_with_its_line() {
    for text in ["server:\n  name: [a\nx: y\n", "server:\n\tname: a\n", "a: b: c\n", "a: 'x\n"] {
        let loaded = TestFiles::default().with("main.yaml", text).load();
        let told = told(&loaded);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("error: this is not valid YAML: "), "{told:?}");
        assert!(!told[0].starts_with("0:"), "{told:?}");
    }
}

#[test]
fn ec_load_021_a_key_that_comes_twice_is_a_warning_and_the_last_counts() {
    let text = "server: {name: s}\nserver: {name: t}\n";
    let loaded =
        finds(text, &["2:1 warning: the key `server` is already on line 1; the last one is used"]);
    assert_eq!(
        loaded.scenario.unwrap().server.info.to_json(),
        br#"{"name":"t","version":"0.0.0"}"#
    );
}

#[test]
fn ec_phase_015_a_tool_that_an_earlier_phase_added_can_be_replaced() {
    let other = TOOL.replace("name: t", "name: x");
    let text = phased(&format!(
        "- name: a\n  add_tools: [{other}]\n  advance: {{after: 1s}}\n- name: b\n  replace_tools: {{x: {other}}}\n"
    ));
    let scenario = finds(&text, &[]).scenario.unwrap();
    assert_eq!(names(&scenario.phases[1].state.tools), ["t", "x"]);
}

#[test]
fn ec_phase_016_a_second_removal_in_a_later_phase_is_no_error() {
    let other = TOOL.replace("name: t", "name: x");
    let text = phased(&format!(
        "- name: a\n  add_tools: [{other}]\n  remove_tools: [t]\n  advance: {{after: 1s}}\n- name: b\n  remove_tools: [t, x]\n"
    ));
    let loaded = finds(
        &text,
        &[
            "9:21 warning: phases[1].remove_tools[1]: only an earlier phase has a tool `x`, and its changes have ended",
        ],
    );
    assert!(loaded.scenario.unwrap().phases[1].state.tools.is_empty());
}

#[test]
fn ec_phase_017_capabilities_of_a_phase_go_over_those_before_by_name() {
    let text = format!(
        "server:\n  name: s\n  capabilities: {{tools: {{list_changed: false}}, logging: {{}}, completions: {{}}}}\n\
         baseline:\n  tools: [{TOOL}]\n  capabilities: {{tools: {{listChanged: true}}}}\n\
         phases:\n- name: a\n  replace_capabilities: {{logging: {{x: 1}}, prompts: {{}}}}\n"
    );
    let scenario = finds(&text, &[]).scenario.unwrap();
    let shown = |node: &Option<Node>| String::from_utf8(node.as_ref().unwrap().to_json()).unwrap();
    assert_eq!(
        shown(&scenario.baseline.capabilities),
        r#"{"tools":{"listChanged":true},"logging":{},"completions":{}}"#
    );
    assert_eq!(
        shown(&scenario.phases[0].state.capabilities),
        r#"{"tools":{"listChanged":true},"logging":{"x":1},"completions":{},"prompts":{}}"#
    );
    let text = phased("- name: a\n  replace_capabilities: {tools: {listChanged: true}}\n");
    let scenario = finds(&text, &[]).scenario.unwrap();
    assert!(scenario.baseline.capabilities.is_none());
    let inferred = shown(&scenario.phases[0].state.capabilities);
    assert_eq!(inferred, r#"{"tools":{"listChanged":true}}"#);
}

#[test]
fn ec_phase_020_no_name_of_a_phase_is_reserved() {
    let text = phased("- name: baseline\n  advance: {after: 1s}\n- name: 'null'\n");
    finds(&text, &[]);
}

#[test]
fn ec_phase_023_a_bad_regular_expression_is_an_error() {
    let text = phased(
        "- name: a\n  advance: {on: tools/call, match: {args.path: {regex: '('}}}\n- name: b\n",
    );
    let loaded = TestFiles::default().with("main.yaml", text).load();
    let told = told(&loaded);
    assert!(
        told.len() == 1 && told[0].starts_with("5:56 error: phases[0].advance.match"),
        "{told:?}"
    );
}

#[test]
fn ec_dyn_012_an_empty_sequence_is_an_error() {
    finds(
        &answering("    sequence: []\n"),
        &["5:15 error: tools[0].response.sequence: a sequence needs at least one answer"],
    );
}

#[test]
fn an_attack_that_is_over_after_three_calls_is_probably_not_meant() {
    let text = phased(&format!(
        "- name: attack\n  advance: {{on: tools/call, count: 3}}\n  replace_tools: {{t: {TOOL}}}\n"
    ));
    finds(
        &text,
        &[
            "5:12 warning: phases[0].advance: `advance` ends a phase: the changes of the first phase apply from the start, and after this one only the baseline is left",
        ],
    );
}

#[test]
fn there_is_a_limit_to_everything() {
    let limits = ScenarioLimits {
        phases: 1,
        tools: 1,
        resources: 1,
        prompts: 1,
        ..ScenarioLimits::default()
    };
    let other = TOOL.replace("name: t", "name: x");
    let folder = TestFiles::default().with(
        "main.yaml",
        format!("server: {{name: s}}\nbaseline:\n  tools: [{TOOL}]\nphases:\n- {{name: a, add_tools: [{other}]}}\n- {{name: b}}\n"),
    );
    assert_eq!(
        told(&folder.load_with(limits, ScenarioFileKind::Scenario)),
        [
            "5:3 error: phases: there are 2 phases; the limit is 1 (TAPEGATE_MAX_PHASES)",
            "5:3 error: phases[0]: there are 2 tools; the limit is 1 (TAPEGATE_MAX_TOOLS)",
        ]
    );
    let limits = ScenarioLimits { config_bytes: 10, ..ScenarioLimits::default() };
    assert_eq!(
        told(&folder.load_with(limits, ScenarioFileKind::Scenario)),
        [
            "0:0 error: the file cannot be read: it has more than 10 bytes; move large bodies to files of their own with `$file`, or raise TAPEGATE_MAX_CONFIG_BYTES"
        ]
    );
}

#[test]
fn tools_may_shadow_each_other_but_resources_and_prompts_may_not() {
    let text = format!(
        "server: {{name: s}}\ntools:\n- {TOOL}\n- {TOOL}\nresources:\n- resource: {{uri: u, name: n}}\n- resource: {{uri: u, name: m}}\nprompts:\n- {{prompt: {{name: p}}, response: {{messages: []}}}}\n- {{prompt: {{name: p}}, response: {{messages: []}}}}\n"
    );
    finds(
        &text,
        &[
            "4:3 warning: tools[1]: duplicate tool `t`; both are listed, calls go to the last",
            "7:3 error: resources[1]: there is already a resource `u`",
            "10:3 error: prompts[1]: there is already a prompt `p`",
        ],
    );
}

#[test]
fn every_fault_is_told_at_once() {
    let text = "server: {nam: s, version: 1, page_size: 0}\ntols: []\ntools:\n- tool: {name: ''}\n  response: {contnet: [], isError: 3}\n- 7\nunknown_methods: eror\n";
    finds(
        text,
        &[
            "1:9 error: server: `name` is missing",
            "1:10 error: server: there is no key `nam` here; did you mean `name`?",
            "1:27 error: server.version: this must be text, but it is a number; put it in quotes",
            "1:41 error: server.page_size: this must be a whole number from 1, not 0",
            "2:1 error: there is no key `tols` here; did you mean `tools`?",
            "4:9 error: tools[0].tool: `inputSchema` is missing",
            "4:16 error: tools[0].tool.name: this must not be empty",
            "5:14 error: tools[0].response: there is no key `contnet` here; did you mean `content`?",
            "5:36 error: tools[0].response.isError: this must be true or false, but it is a number",
            "6:3 error: tools[1]: this must be a map, but it is a number",
            "7:18 error: unknown_methods: this must be `ignore`, `error` or `drop`, not `eror`; did you mean `error`?",
        ],
    );
}

#[test]
fn an_answer_can_be_an_error_or_nothing_at_all() {
    let text = answering(
        "    sequence:\n    - error: {code: -32000, message: no}\n    - silent: true\n    - {content: [], isError: true, structuredContent: {a: 1}, _meta: {b: 2}}\n    - result: {x: 1}\n",
    );
    let scenario = finds(&text, &[]).scenario.unwrap();
    let crate::model::AnswerSource::Sequence(sequence) =
        &scenario.baseline.tools[0].response.otherwise
    else {
        panic!()
    };
    let shown: Vec<String> = sequence
        .replies
        .iter()
        .map(|reply| match &reply.outcome {
            ReplyOutcome::Result(form) => {
                format!("result {}", String::from_utf8_lossy(form.as_plain().unwrap()))
            }
            ReplyOutcome::Error(form) => {
                format!("error {}", String::from_utf8_lossy(form.as_plain().unwrap()))
            }
            ReplyOutcome::Silence => "silence".to_owned(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"error {"code":-32000,"message":"no"}"#,
            "silence",
            r#"result {"content":[],"isError":true,"structuredContent":{"a":1},"_meta":{"b":2}}"#,
            r#"result {"x":1}"#,
        ]
    );
}
