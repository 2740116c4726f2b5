//! Filling templates and JSON templates.

use std::cell::Cell;

use super::*;
use crate::finding::Severity;

fn with<T>(params: &[u8], work: impl FnOnce(&TemplateContext<'_>) -> T) -> T {
    let dice = Cell::new(1);
    let replies = [("one".to_owned(), b"{\"a\":1}".to_vec()), ("one".to_owned(), b"[2]".to_vec())];
    work(&TemplateContext {
        params,
        item: None,
        called: None,
        uri: &[("id".to_owned(), "7/8".to_owned())],
        call_count: 3,
        phase: "calm",
        phase_index: 2,
        id: b"",
        method: "tools/call",
        connection: 4,
        env: &|name| (name == "HOME").then(|| "/home".to_owned()),
        replies: &replies,
        at: Default::default(),
        dice: &dice,
    })
}

#[track_caller]
fn fills(text: &str, wanted: &str) {
    let params = br#"{"arguments":{"a":"x","n":1e2,"l":[1,[2]],"o":{"k":"v"},"s":"\ud800"}}"#;
    let template = Template::of(text, InterpolationMode::All);
    let (filled, json) = with(params, |context| {
        let mut json = Vec::new();
        template.write_json(context, &mut json);
        (template.fill(context), json)
    });
    assert_eq!(filled, wanted, "{text}");
    assert_eq!(json::string(&json).as_deref(), Some(wanted), "{text}");
}

#[test]
fn variables_and_functions_are_filled_in() {
    fills("", "");
    fills("plain $ {} $x }", "plain $ {} $x }");
    fills("${args.a}${args.a}", "xx");
    fills("${ args.a } ${args.n} ${args.l[1][0]} ${args.l[-2]} ${args.o.k}", "x 1e2 2 1 v");
    fills("${uri.id} ${uri.none} ${phase.index} ${connection.id} ${env.HOME}", "7/8  2 4 /home");
    fills("${reply.one[0]} ${reply.one.a} ${reply.two}", "2  ");
    fills("${tool.name}${tool.call_count}${request.id}", "");
    fills("${fn.default(fn.upper(args.none), fn.upper('a,b)}'))}", "A,B)}");
    fills("${fn.truncate('äöü', 2)} ${fn.truncate(args.a, 'many')} ${fn.len('äöü')}", "äö x 3");
    fills("${fn.json('\"')} ${fn.json(args.none)} ${fn.len(args.o)}", "\"\\\"\" null 1");
    fills("${fn.timestamp()}", "1970-01-01T00:00:00.000Z");
    fills("${args['a']} ${args[\"o\"]['k']}", "x v");
}

#[test]
fn a_literal_is_no_variable() {
    fills("$${args.a} $$${args.a} ${args.a}", "${args.a} $${args.a} x");
    fills("${", "${");
    fills("${args.a", "${args.a");
    fills("a ${} b ${args.a}", "a ${} b x");
    fills("${fn.nosuch(args.a)}", "${fn.nosuch(args.a)}");
}

#[test]
fn strings_are_sent_as_the_client_wrote_them() {
    let template = Template::of("<${args.s}>", InterpolationMode::All);
    let params = br#"{"arguments":{"s":"\ud800\u0041\/"}}"#;
    let mut out = Vec::new();
    with(params, |context| template.write_json(context, &mut out));
    assert_eq!(out, br#""<\ud800\u0041\/>""#);
}

fn read_form(node: &Node, interpolate: InterpolationMode, findings: &mut Findings) -> JsonTemplate {
    JsonTemplate::read(node, &|_| interpolate, &GeneratorLimits::default(), findings)
}

#[test]
fn what_has_no_holes_is_one_piece() {
    let node = Node::new(NodeValue::List(vec![
        Node::text("a \"b\" $${x}"),
        Node::new(NodeValue::Number("1.50".to_owned())),
        Node::new(NodeValue::Raw("{ \"a\" : 1,\n\"a\":2}".to_owned())),
    ]));
    let mut findings = Findings::default();
    let form = read_form(&node, InterpolationMode::All, &mut findings);
    assert_eq!(form.as_plain(), Some(&br#"["a \"b\" ${x}",1.50,{"a":1,"a":2}]"#[..]));
    let form = read_form(&node, InterpolationMode::None, &mut findings);
    assert_eq!(form.as_plain(), Some(&br#"["a \"b\" $${x}",1.50,{"a":1,"a":2}]"#[..]));
    assert!(findings.into_list().is_empty());
}

#[test]
fn a_map_of_very_many_keys_takes_no_time() {
    let entry = |number: u32| {
        let key = crate::node::NodeKey { spot: Default::default(), name: format!("k{number}") };
        (key, Node::new(NodeValue::Number(number.to_string())))
    };
    let node = Node::new(NodeValue::Map((0..300_000).map(entry).collect()));
    let form = read_form(&node, InterpolationMode::All, &mut Findings::default());
    assert_eq!(form.as_plain(), Some(&*node.to_json()));
}

#[test]
fn faults_are_findings() {
    for (text, severity, message) in [
        ("${", Severity::Error, "a name is missing"),
        ("${args.a", Severity::Error, "unexpected `$`"),
        ("${args..a}", Severity::Error, "a name is missing"),
        ("${args[x]}", Severity::Error, "`x` is not a list index"),
        ("${args['x}", Severity::Error, "a quote is not closed"),
        ("${fn.uper(args.a)}", Severity::Error, "unknown function `fn.uper`; known: upper"),
        ("${fn.upper()}", Severity::Error, "`fn.upper` has 0 arguments, not 1"),
        ("${fn.default(args.a 'x')}", Severity::Error, "`fn.default` has no closing `)`"),
        ("${tols.name}", Severity::Warning, "unknown variable in `${tols.name}`"),
        ("${fn.upper(x)}", Severity::Warning, "unknown variable in `${fn.upper(x)}`"),
    ] {
        let mut findings = Findings::default();
        read_form(&Node::text(text), InterpolationMode::All, &mut findings);
        let found = findings.into_list();
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].severity, severity, "{text}");
        assert!(found[0].message.contains(message), "{text}: {}", found[0].message);
    }
    let deep = format!("${{{}'x'{}}}", "fn.upper(".repeat(20), ")".repeat(20));
    let mut findings = Findings::default();
    read_form(&Node::text(deep), InterpolationMode::All, &mut findings);
    assert!(findings.has_errors());
}

proptest::proptest! {
    #[test]
    fn any_text_reads_and_what_is_filled_is_json(text in "[$a-c{}.()'\\[\\]\"\\\\0-9, \n]{0,40}", value in ".{0,20}") {
        let mut params = b"{\"arguments\":{\"a\":".to_vec();
        json::write_str(&mut params, &value);
        params.extend_from_slice(b"}}");
        let text = text.replace('a', "args.a");
        let template = Template::of(&text, InterpolationMode::All);
        let mut out = Vec::new();
        let filled = with(&params, |context| {
            template.write_json(context, &mut out);
            template.fill(context)
        });
        let read = json::string(&out);
        proptest::prop_assert_eq!(read.as_deref(), Some(&*filled));
    }
}
