//! Scenarios made of several files.

use super::language::{good, otherwise, tool};
use super::*;

#[test]
fn each_file_says_for_itself_what_is_put_in() {
    let item = "tool: {name: t, inputSchema: {type: object}}\nresponse: {content: [{type: text, text: '${args.x}'}]}\n";
    let folder = TestFiles::default()
        .with("main.yaml", "server: {name: s}\ntools:\n- $include: a.yaml\n- $include: b.yaml\n  override: {tool: {name: u}}\n")
        .with("lib/a.yaml", item)
        .with("b.yaml", format!("interpolate: none\n{item}"));
    let loaded = folder.load();
    assert_eq!(told(&loaded), [""; 0]);
    let tools = loaded.scenario.unwrap().baseline.tools;
    assert_eq!(otherwise(&tools[0]), r#"{"content":[{"type":"text","text":<${args.x}>}]}"#);
    assert_eq!(otherwise(&tools[1]), r#"{"content":[{"type":"text","text":"${args.x}"}]}"#);
}

#[test]
fn files_become_what_their_names_say() {
    let text = "server: {name: s}\ntools:\n- tool:\n    name: t\n    inputSchema: {$file: schema.json}\n  response:\n    content:\n    - {type: image, mimeType: image/png, $file: a.png}\n    - {type: audio, mimeType: audio/x, data: {$file: sub/b.raw}}\n    - {type: text, $file: c.json}\n    - {type: text, text: {$file: c.md}}\n    structuredContent: {$file: d.yml}\nresources:\n- resource: {uri: 'u:', name: n}\n  response: {contents: [{uri: 'u:', $file: a.png}, {uri: 'u:', $file: c.md}, {blob: {$file: c.md}}]}\n";
    let folder = TestFiles::default()
        .with("main.yaml", text)
        .with(
            "schema.json",
            r#"{"type":"object","x":"\ud83d\ude00\ud800","y":{"a":1,"a":2},"z":1.0}"#,
        )
        .with("a.png", b"\x89PNG".to_vec())
        .with("sub/b.raw", b"\xff".to_vec())
        .with("c.json", "{\"a\": 1}\n")
        .with("lib/c.md", "# text\n")
        .with("d.yml", "a: [1, b]\n");
    let loaded = folder.load();
    assert_eq!(told(&loaded), [""; 0]);
    let state = loaded.scenario.unwrap().baseline;
    assert_eq!(
        String::from_utf8(state.tools[0].definition.to_json()).unwrap(),
        r#"{"name":"t","inputSchema":{"type":"object","x":"\ud83d\ude00\ud800","y":{"a":1,"a":2},"z":1.0}}"#
    );
    assert_eq!(
        otherwise(&state.tools[0]),
        r##"{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw=="},{"type":"audio","mimeType":"audio/x","data":"/w=="},{"type":"text","text":"{\"a\": 1}\n"},{"type":"text","text":"# text\n"}],"structuredContent":{"a":[1,"b"]}}"##
    );
    assert_eq!(
        otherwise(&state.resources[0]),
        r##"{"contents":[{"uri":"u:","blob":"iVBORw=="},{"uri":"u:","text":"# text\n"},{"uri":"u:","blob":"IyB0ZXh0Cg=="}]}"##
    );
}

#[test]
fn nothing_is_put_into_the_text_of_a_file() {
    let folder = TestFiles::default()
        .with("main.yaml", tool("content: [{type: text, text: 'x ${args.a}'}, {type: text, $file: s.sh}, {$file: t.yaml}]\n"))
        .with("s.sh", "echo ${HOME} ${x:-y} $$\n")
        .with("t.yaml", "type: text\ntext: y ${args.b}\n");
    let loaded = folder.load();
    assert_eq!(told(&loaded), [""; 0]);
    assert_eq!(
        otherwise(&loaded.scenario.unwrap().baseline.tools[0]),
        r#"{"content":[{"type":"text","text":<x ${args.a}>},{"type":"text","text":"echo ${HOME} ${x:-y} $$\n"},{"type":"text","text":<y ${args.b}>}]}"#
    );
}

#[test]
fn faults_in_files_are_told_there_and_where_the_file_is_named() {
    let folder = TestFiles::default()
        .with("main.yaml", "server: {name: s}\ntools:\n- $include: a.yaml\n- $include: a.yaml\n- $file: b.json\n- $file: c.yaml\n")
        .with("lib/a.yaml", "tool: [\n")
        .with("b.json", "{\n  \"tool\": nul\n}")
        .with("c.yaml", "tool: {name: t, inputSchema: {type: object}}\nresponse: {content: 5}\n");
    assert_eq!(
        told(&folder.load()),
        [
            "3:13 error: `a.yaml` cannot be used",
            "4:13 error: `a.yaml` cannot be used",
            "5:10 error: `b.json` cannot be used",
            "lib/a.yaml:2:1 error: this is not valid YAML: while parsing a node, did not find expected node content",
            "b.json:2:11 error: not valid JSON: no JSON value",
            "c.yaml:2:21 error: tools[3].response.content: this must be a list, but it is a number",
        ]
    );
}

#[test]
fn a_scenario_may_be_json() {
    let text = r#"{"server": {"name": "s", "title": "\ud83d\ude00"}, "tools": [], "x": 1}"#;
    let folder = TestFiles::default().with("main.json", text);
    let loading = LoadOptions {
        files: &folder,
        library: None,
        limits: ScenarioLimits::default(),
        form: ScenarioFileKind::Scenario,
    };
    assert_eq!(told(&load("main.json", &loading)), ["1:70 error: there is no key `x` here"]);
}

#[test]
fn json_to_the_letter_is_sent_to_the_letter() {
    let scenario = good(&tool(
        "content:\n- $json: '{\"type\":\"text\",\"text\":\"\\ud800\",\"text\":\"b\"}'\n- {type: text, text: {$json: '\"\\udc00 ${args.x}\"'}}\n",
    ));
    assert_eq!(
        otherwise(&scenario.baseline.tools[0]),
        r#"{"content":[{"type":"text","text":"\ud800","text":"b"},{"type":"text","text":"\udc00 ${args.x}"}]}"#
    );
    finds(
        &tool("content:\n- $json: '{'\n- $json: 5\n"),
        &[
            "6:7 error: not valid JSON: the text ends too early at byte 1",
            "7:7 error: `$json` takes text, but this is a number",
        ],
    );
}

#[test]
fn directives_that_make_no_sense_are_errors() {
    let text = "server: {name: s, title: {$file: 3}, icons: [{$file: x, other: y}]}\ntools:\n- {$include: [a], tool: {}}\n";
    finds(
        text,
        &[
            "1:34 error: `$file` takes a path, but this is a number",
            "1:47 error: `$file` must be the only key, or in an item with `type` or `uri`",
            "3:14 error: `$include` takes a path, but this is a list",
            "3:19 error: `tool` beside `$include` has no effect; put it under `override`",
        ],
    );
}

#[test]
fn many_copies_of_a_file_are_refused_before_they_fill_the_memory() {
    let folder = TestFiles::default()
        .with("main.yaml", format!("server: {{name: s}}\ntools:\n{}", "- $include: big.yaml\n".repeat(900)))
        .with("lib/big.yaml", format!("tool: {{name: t, inputSchema: {{type: object}}}}\nresponse: {{content: [{{type: text, text: {}}}]}}\n", "x".repeat(1 << 20)));
    let loaded = folder.load();
    let told = told(&loaded);
    assert!(
        told.iter()
            .any(|line| line.ends_with("the included files are too large or too deeply nested")),
        "{}",
        told.len()
    );
}

#[test]
fn files_in_files_nest_only_so_deep() {
    let mut folder = TestFiles::default()
        .with("main.yaml", "server: {name: s}\nmetadata: {x: {$include: 0.yaml}}\n");
    for number in 0..9 {
        let text =
            format!("{}{{$include: {}.yaml}}{}\n", "[".repeat(60), number + 1, "]".repeat(60));
        folder = folder.with(&format!("lib/{number}.yaml"), text);
    }
    let told = told(&folder.with("lib/9.yaml", "end\n").load());
    assert_eq!(
        told,
        ["lib/3.yaml:1:72 error: the included files are too large or too deeply nested"]
    );
}
