//! Errors in a policy are reported with their position, all at once.

use super::*;
use crate::model::{Exposure, OnDrift, Profile};

#[test]
fn v_001_a_name_of_a_server_comes_once() {
    finds_in(
        "sources:\n- {id: a}\n- {id: b}\n- {id: a}\n",
        &["6:8 error: sources[2].id: the name `a` is already on line 4"],
    );
}

#[test]
fn v_002_and_v_016_a_name_of_a_server_is_a_plain_word() {
    finds_in(
        "sources: [{id: _a}, {id: 'a b'}, {id: ''}, {id: 5}, {id: a.b-c_1}, {id: '*'}]\n",
        &[
            "3:16 error: sources[0].id: `_a` begins with `_`, which is reserved; use another name",
            "3:26 error: sources[1].id: `a b` is not a server name; use letters, digits, `.`, `_` and `-`, or `*`",
            "3:39 error: sources[2].id: the name of a server must not be empty",
            "3:49 error: sources[3].id: this must be the name of a server, but it is a number; put it in quotes",
        ],
    );
}

/// A policy with these rules.
fn rules(rules: &str) -> String {
    format!("schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:\n{rules}")
}

#[test]
fn v_004_and_v_005_policy_ids_go_with_cedar() {
    finds(
        &rules("  - {match: a, action: deny, policy_id: x}\n"),
        &[
            "5:41 warning: governance.rules[0].policy_id: `policy_id` does nothing with `action: deny`, only with `policy`",
        ],
    );
    finds(
        &rules(
            "  - {match: a, action: policy}\ncedar: {inline: 'permit(principal, action, resource);'}\n",
        ),
        &["5:5 error: governance.rules[0]: `policy_id` is missing; `action: policy` requires it"],
    );
}

#[test]
fn v_006_a_workflow_that_is_named_is_there() {
    finds(
        &rules("  - {match: a, action: approve, approval: opps}\napproval: {ops: {}, dev: {}}\n"),
        &[
            "5:43 error: governance.rules[0].approval: there is no workflow `opps` in `approval`; did you mean `ops`?",
        ],
    );
}

#[test]
fn v_006b_of_several_workflows_one_must_be_named() {
    finds(
        &rules("  - {match: a, action: approve}\napproval: {ops: {}, dev: {}}\n"),
        &[
            "5:5 error: governance.rules[0]: `approval` is missing: there is more than one workflow, `dev`, `ops`",
        ],
    );
}

#[test]
fn v_007_a_rule_is_about_servers_that_there_are() {
    finds(
        &rules(
            "  - {source: [web, flies, 'w*'], action: deny}\nsources: [{id: files}, {id: web}]\n",
        ),
        &[
            "5:20 error: governance.rules[0].source: there is no server `flies` in `sources`; did you mean `files`?",
        ],
    );
    good(&rules("  - {source: anything, action: deny}\nsources: [{id: files}, {id: '*'}]\n"));
}

#[test]
fn v_008_a_url_is_one() {
    finds_in(
        "sources: [{id: a, url: 'localhost:80'}]\n",
        &[
            "3:24 error: sources[0].url: `localhost:80` is not a valid URL: it must begin with `http://` or `https://`",
        ],
    );
}

#[test]
fn v_009_and_v_014_globs_are_globs() {
    finds(
        &rules(
            "  - {match: '[a', action: deny}\n  - {match: [b, '[z-a]'], action: deny}\nsources:\n- {id: a, expose: {mode: blocklist, tools: ['x[']}}\n",
        ),
        &[
            "5:13 error: governance.rules[0].match: a `[` has no `]`; a bracket itself is written as `[[]`",
            "6:17 error: governance.rules[1].match[1]: the range `z-a` is reversed",
            "8:45 error: sources[0].expose.tools[0]: a `[` has no `]`; a bracket itself is written as `[[]`",
        ],
    );
    finds(
        &rules("  - {match: 'x_{a,b}', action: deny}\n"),
        &[
            "5:13 warning: governance.rules[0].match: braces are literal in the glob `x_{a,b}`; write a list of globs",
        ],
    );
}

#[test]
fn v_010_a_list_of_no_servers_is_a_mistake() {
    finds_in(
        "sources: []\n",
        &[
            "3:10 error: sources: an empty list of servers exposes nothing; leave `sources` out to expose all servers",
        ],
    );
}

#[test]
fn v_012_a_server_speaks_mcp() {
    finds_in(
        "sources: [{id: a, kind: a2a}]\n",
        &["3:25 error: sources[0].kind: this must be `mcp`, not `a2a`"],
    );
}

#[test]
fn v_013_a_file_that_is_named_is_there() {
    let text = rules(
        "  - {match: a, action: policy, policy_id: p}\ncedar: {policies: [a.cedar, b.cedar], schema: c.json}\n",
    );
    let files = MemoryFiles::default()
        .with_file("conf/tapegate.yaml", text)
        .with_file("conf/a.cedar", "permit(principal, action, resource);");
    let loaded = load("conf/tapegate.yaml", &files);
    assert_eq!(
        told(&loaded),
        [
            "6:29 error: cedar.policies[1]: there is no file `b.cedar`, relative to the folder of this file",
            "6:47 error: cedar.schema: there is no file `c.json`, relative to the folder of this file",
        ]
    );
    assert_eq!(loaded.sources, ["conf/tapegate.yaml", "conf/a.cedar"]);
}

#[test]
fn v_015_people_get_five_seconds_at_least() {
    finds_in(
        "approval: {a: {timeout: 4999ms, blocking_timeout: 1s}, b: {timeout: PT5S}}\n",
        &[
            "3:25 error: approval.a.timeout: `timeout` must be at least 5s, so that a person can answer",
            "3:51 error: approval.a.blocking_timeout: `blocking_timeout` must be at least 5s, so that a person can answer",
        ],
    );
}

#[test]
fn v_tel_what_telemetry_cannot_be_is_told() {
    finds_in(
        "telemetry:
  enabled: true
  otlp: {endpoint: nowhere}
  sampling: {success_sample_rate: 1.5}
  batch: {max_queue_size: 0, max_export_batch_size: 513, scheduled_delay_ms: 99, export_timeout_ms: 5}
",
        &[
            "5:20 error: telemetry.otlp.endpoint: `nowhere` is not a valid URL: it must begin with `http://` or `https://`",
            "6:35 error: telemetry.sampling.success_sample_rate: `1.5` is not a share from 0 to 1",
            "7:27 error: telemetry.batch.max_queue_size: this must be a whole number from 1 to 1048576, not 0",
            "7:53 error: telemetry.batch: a batch (513) is larger than the queue (0)",
            "7:78 error: telemetry.batch.scheduled_delay_ms: this must be a whole number from 100 to 3600000, not 99",
            "7:101 error: telemetry.batch.export_timeout_ms: this must be a whole number from 100 to 3600000, not 5",
        ],
    );
    finds_in(
        "telemetry: {enabled: true}\n",
        &["3:12 error: telemetry: `otlp.endpoint` is missing; telemetry is sent there"],
    );
}

#[test]
fn a_file_of_another_schema_or_of_nothing_is_refused() {
    finds(
        "schema: 2\ngovernance: {defaults: {action: deny}}\n",
        &["1:9 error: schema: this must be 1, not 2"],
    );
    finds("# nothing\n", &["1:1 error: there is nothing in this file"]);
    finds("[]", &["1:1 error: this must be a map, but it is a list"]);
    finds("{}", &["1:1 error: `schema` is missing", "1:1 error: `governance` is missing"]);
    let loaded = load("none.yaml", &MemoryFiles::default());
    assert_eq!(told(&loaded), ["0:0 error: the file cannot be read: there is no such file"]);
}

#[test]
fn arguments_are_tested_by_path() {
    let policy = good(&rules(
        "  - match: write_file
    action: forward
    arguments:
      path: {under: /data}
      mode: {in: [text, 5, null]}
      size: {min: 0, max: 1e6}
      $.opts['a.b']: {exists: false}
      tags[*]: {not: {regex: '^secret'}}
      count: 3
      force: false
",
    ));
    let holds = |arguments: &str| {
        policy.rules[0].arguments.iter().all(|one| one.must_hold(arguments.as_bytes()))
    };
    let call = |change: &str| {
        format!(
            r#"{{"path":"/data/a","mode":"text","size":10,"tags":["x"],"count":3.0,"force":false{change}}}"#
        )
    };
    assert_eq!(policy.rules[0].arguments.len(), 7);
    assert!(holds(&call("")));
    for change in [
        r#","path":"/etc/a""#,
        r#","mode":"binary""#,
        r#","size":1000001"#,
        r#","opts":{"a.b":1}"#,
        r#","tags":["y","secret1"]"#,
        r#","count":4"#,
        r#","force":true"#,
    ] {
        assert!(!holds(&call(change)), "{change}");
    }
    assert!(!holds("{}"));
}

#[test]
fn a_glob_on_a_path_is_told_with_the_test_that_was_meant() {
    let with = |path: &str| {
        rules(&format!("  - {{match: x, action: forward, arguments: {{path: {path}}}}}\n"))
    };
    let output_text = "`/tmp/*` compares text, and a path has other spellings (`/tmp/../etc/passwd`, `../x`); write `{ under: /tmp }`";
    finds(
        &with("/tmp/*"),
        &[&format!("5:51 warning: governance.rules[0].arguments.path: {output_text}")],
    );
    finds(&with("{under: /tmp}"), &[]);
    finds(
        &with("{under: [/tmp, data]}"),
        &[
            "5:66 error: governance.rules[0].arguments.path.under[1]: `data` is not an absolute folder; it must start with `/`, or with a variable such as `${PWD}`",
        ],
    );
    finds(
        &with("{under: []}"),
        &[
            "5:51 error: governance.rules[0].arguments.path: `under` is an empty list, which matches no path",
        ],
    );
}

#[test]
fn optional_stands_beside_a_test() {
    let with = |test: &str| {
        rules(&format!("  - {{match: x, action: forward, arguments: {{n: {test}}}}}\n"))
    };
    finds(&with("{max: 5, optional: true}"), &[]);
    finds(&with("{max: 5, optional: false}"), &[]);
    let at = "5:48 error: governance.rules[0].arguments.n:";
    finds(
        &with("{optional: true}"),
        &[&format!("{at} there is no test here; write `exists: true` for any value")],
    );
    let output_text = "`optional` goes beside a test, but not in `not` and not with `exists`";
    finds(&with("{exists: false, optional: true}"), &[&format!("{at} {output_text}")]);
}

#[test]
fn tests_that_mean_nothing_are_told() {
    finds(
        &rules(
            "  - action: deny
    arguments:
      a[: x
      b: {}
      c: {globb: x}
      d: {not: {glob: x, min: 5}}
      e: {not: {not: x}}
      f: {equals: [1]}
      g: {in: []}
      h: {min: 5, max: 4}
      i: {regex: '('}
      j: [x]
",
        ),
        &[
            "7:7 error: governance.rules[0].arguments.a[: not a valid path: `*`, a number or a quoted key is missing at character 3",
            "8:10 error: governance.rules[0].arguments.b: there is no test here; write `exists: true` for any value",
            "9:11 error: governance.rules[0].arguments.c: there is no key `globb` here; did you mean `glob`?",
            "10:16 error: governance.rules[0].arguments.d.not: `not` takes one test; write a rule for each",
            "11:22 error: governance.rules[0].arguments.e.not.not: `not` cannot contain `not`",
            "12:19 error: governance.rules[0].arguments.f.equals: expected a text, a number, true, false or null, found a list",
            "13:10 error: governance.rules[0].arguments.g: `in` is an empty list, which matches nothing",
            "14:10 error: governance.rules[0].arguments.h: no number is from 5 to 4",
            "15:18 error: governance.rules[0].arguments.i.regex: this is not a valid regular expression: unclosed group",
            "16:10 error: governance.rules[0].arguments.j: this must be a glob, such as `read_*` or a number or true or false or a map, but it is a list",
        ],
    );
}

#[test]
fn a_rule_that_is_never_reached_is_told() {
    finds(
        &rules(
            "  - {match: read_*, action: forward, arguments: {a: b}, other_arguments: none}
  - {id: reads, match: read_*, action: forward}
  - {match: read_file, action: deny}
  - {match: [write, read_x], action: deny}
  - {action: deny, source: a}
  - {match: x, source: a, action: forward}
  - {match: x, method: logging/*, source: a, action: forward}
",
        ),
        &[
            "7:5 warning: governance.rules[2]: this rule is never reached: `reads` on line 6 comes first and matches everything that this rule matches",
            "10:5 warning: governance.rules[5]: this rule is never reached: `rules[4]` on line 9 comes first and matches everything that this rule matches",
        ],
    );
}

#[test]
fn a_rule_about_what_nobody_exposes_is_told() {
    let sources =
        "sources: [{id: a, expose: {mode: allowlist, tools: [x]}}, {id: b, enabled: false}]\n";
    finds(
        &rules(&format!(
            "  - {{match: [x, z], action: deny}}\n  - {{match: y, action: deny}}\n{sources}"
        )),
        &["6:5 warning: governance.rules[1]: this rule matches nothing: no server exposes `y`"],
    );
}

#[test]
fn rules_have_names_that_differ() {
    finds(
        &rules("  - {id: a, match: x, action: deny}\n  - {id: a, match: y, action: deny}\n"),
        &["6:10 error: governance.rules[1].id: the rule `a` is already on line 5"],
    );
}

#[test]
fn a_list_of_nothing_to_match_is_a_mistake() {
    finds(
        &rules("  - {match: [], method: [], source: [], action: deny}\n"),
        &[
            "5:13 error: governance.rules[0].match: an empty list matches nothing; leave `match` out to match everything",
            "5:25 error: governance.rules[0].method: an empty list matches nothing; leave `method` out to match all",
            "5:37 error: governance.rules[0].source: an empty list matches nothing; leave `source` out to match all",
        ],
    );
}

#[test]
fn a_list_of_tools_alone_is_about_all_kinds_and_with_others_each_has_its_own() {
    let text = |expose: &str| format!("{HEAD}sources: [{{id: a, expose: {expose}}}]\n");
    let shows = |expose: &str, name: &str| {
        let policy = good(&text(expose));
        let source = policy.source("a").unwrap();
        [&source.tools, &source.prompts, &source.resources]
            .map(|kind: &Exposure| kind.is_visible(name))
    };
    assert_eq!(shows("{mode: allowlist, tools: [x]}", "x"), [true, true, true]);
    assert_eq!(shows("{mode: allowlist, tools: []}", "x"), [false, false, false]);
    assert_eq!(shows("{mode: allowlist, tools: [x], prompts: [y]}", "x"), [true, false, false]);
    assert_eq!(shows("{mode: blocklist, resources: [x]}", "x"), [true, true, false]);
    assert_eq!(shows("all", "x"), [true, true, true]);
    finds(
        &text("{mode: allowlist}"),
        &["3:27 error: sources[0].expose: `tools` is missing: `mode: allowlist` needs a list"],
    );
    finds(
        &text("{mode: all, tools: [x]}"),
        &[
            "3:46 error: sources[0].expose: `tools` does not apply to `mode: all`, which exposes everything",
        ],
    );
}

#[test]
fn fields_to_redact_are_paths() {
    finds_in(
        "approval:
  c: {destination: cli}
  d: {destination: {type: cli}, redact_fields: ['a..', b.c, '..d']}
",
        &[
            "5:49 error: approval.d.redact_fields: not a valid path: the path ends where a key must follow at character 4",
        ],
    );
}

#[test]
fn redaction_takes_names_and_paths_and_tells_what_it_does_not_know() {
    let policy = good(&format!(
        "{HEAD}redaction: {{patterns: [aws], fields: [password, params.arguments.key], on_wire: true}}\n"
    ));
    let texts = policy.redaction.rules.unwrap().texts().to_vec();
    assert_eq!(texts, ["aws", "..password", "params.arguments.key"]);
    assert!(policy.redaction.on_wire);
    let policy = good(&format!("{HEAD}redaction: {{enabled: true}}\n"));
    assert_eq!(policy.redaction.rules.unwrap().texts(), ["secrets"]);
    assert!(good(HEAD).redaction.rules.is_none());
    finds_in(
        "redaction: {rules: [awz], fields: ['a[']}\n",
        &[
            "3:21 error: redaction.rules: redaction rule `awz`: no built-in pattern has this name (to mask every key `awz`, write `..awz`) at character 1",
            "3:36 error: redaction.fields: redaction rule `a[`: `*`, a number or a quoted key is missing at character 3",
        ],
    );
}

#[test]
fn what_a_profile_says_holds_once_it_is_chosen() {
    let mut policy = good(&format!(
        "{HEAD}profile: development
approval: {{a: {{timeout: 1h}}}}
profiles:
  production:
    approval: {{timeout: 30s, on_timeout: approve}}
    pins: {{on_drift: warn}}
    recording: {{enabled: false}}
  development: {{telemetry: {{enabled: true}}}}
telemetry: {{otlp: {{endpoint: 'http://h'}}}}
"
    ));
    assert_eq!(policy.profile, Some(Profile::Development));
    assert_eq!(policy.pins.on_drift, OnDrift::Deny);
    policy.settle(Profile::Production);
    let workflow = &policy.workflows["a"];
    assert_eq!((workflow.timeout.as_secs(), workflow.blocking_timeout.as_secs()), (30, 3600));
    assert!(workflow.forward_on_timeout && !policy.recording.enabled && !policy.telemetry.enabled);
    assert_eq!(policy.pins.on_drift, OnDrift::Warn);
}

#[test]
fn the_rest_of_a_policy_is_read() {
    let text = "schema: 1
governance: {defaults: {action: policy, policy_id: p}}
cedar: {inline: 'permit(principal, action, resource);'}
pins: {on_drift: approve, lock: my.lock}
recording: {folder: tapes, retention: 30d}
activity: {rotate_bytes: 1mb, retention: 2w}
principal: {name: me, namespace: ns, service_account: sa, roles: [admin]}";
    let policy = read(text).policy.unwrap();
    assert_eq!(
        (policy.pins.on_drift, policy.pins.lock_file.as_str()),
        (OnDrift::Approve, "my.lock")
    );
    assert_eq!(policy.pins.workflow.as_deref(), Some("default"));
    assert_eq!(policy.recording.retention.unwrap().as_secs(), 30 * 86_400);
    assert_eq!(policy.activity.rotate_bytes, 1 << 20);
    assert_eq!(policy.principal.roles, ["admin"]);
    finds_in(
        "activity: {rotate_bytes: 1kb}\npins: {on_drift: approve, approval: x}\n",
        &[
            "3:26 error: activity: `rotate_bytes` must be at least 64kb",
            "4:7 warning: there is no `tapegate.lock` yet, so nothing is pinned; `tapegate policy pin` writes it",
            "4:37 error: pins.approval: there is no workflow `x` in `approval`; available: `default`",
        ],
    );
}

#[test]
fn the_version_is_of_everything_a_policy_is_made_from() {
    let text = rules(
        "  - {match: '${X:-a}', action: policy, policy_id: p}\ncedar: {policies: [a.cedar]}\n",
    );
    let version = |cedar: &str, variable: Option<&str>| {
        let mut files =
            MemoryFiles::default().with_file("p.yaml", text.as_str()).with_file("a.cedar", cedar);
        if let Some(value) = variable {
            files = files.with_variable("X", value);
        }
        let loaded = load("p.yaml", &files);
        assert_eq!(told(&loaded), [""; 0]);
        loaded.policy.unwrap().version
    };
    let (one, two) =
        ("permit(principal, action, resource);", "forbid(principal, action, resource);");
    assert_eq!(version(one, None), version(one, None));
    let all =
        [version(one, None), version(two, None), version(one, Some("a")), version(one, Some("b"))];
    for (at, version) in all.iter().enumerate() {
        assert!(!all[..at].contains(version), "{all:?}");
    }
}
