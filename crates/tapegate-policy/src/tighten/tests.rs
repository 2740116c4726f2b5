//! Which changes are proven to tighten, and which are not.

use tapegate_yaml::files::MemoryFiles;

use super::*;
use crate::load::load_marked;

const CEDAR: &str = "permit(principal, action, resource);";

fn policy(text: &str, files: &[(&str, &str)]) -> PolicyLoadResult {
    let mut held =
        MemoryFiles::default().with_file("p.yaml", text.as_bytes()).with_variable("X", "/x");
    for (name, text) in files {
        held = held.with_file(name, text.as_bytes());
    }
    let loaded = load_marked("p.yaml", &held);
    let may_fail = text.contains("${") || text.contains("\\uf8ff");
    assert!(loaded.policy.is_some() || may_fail, "{text}: {:?}", loaded.findings);
    loaded
}

fn proven(old: &str, new: &str) -> bool {
    let files = [("a.cedar", CEDAR)];
    tightens(&policy(old, &files), &policy(new, &files)).is_ok()
}

fn governed(default: &str, rules: &[&str]) -> String {
    let rules: String = rules.iter().map(|rule| format!("    - {{ {rule} }}\n")).collect();
    let rules = if rules.is_empty() { String::new() } else { format!("  rules:\n{rules}") };
    format!("schema: 1\ngovernance:\n  defaults: {{ action: {default} }}\n{rules}")
}

#[track_caller]
fn one_way(loose: &str, strict: &str) {
    assert!(proven(loose, strict), "not proven:\n{loose}\nto\n{strict}");
    assert!(!proven(strict, loose), "proven:\n{strict}\nto\n{loose}");
}

#[test]
fn a_question_about_what_may_be_a_path_is_not_proven_to_be_stricter() {
    // A rule that asks for approval also matches `a/b?c`, which was denied.
    let (old, new) = ("match: a/b, action: forward", "match: a/b, action: approve");
    assert!(!proven(&governed("deny", &[old]), &governed("deny", &[new])));
}

#[test]
fn rules_that_refuse_more_are_proven_and_the_way_back_is_not() {
    let read = "match: read, action: forward";
    let deny = "match: rm, action: deny";
    let ask = "match: write, action: approve";
    for (loose, strict) in [
        (governed("forward", &[]), governed("deny", &[])),
        (governed("forward", &[]), governed("approve", &[])),
        (governed("approve", &[]), governed("deny", &[])),
        // Where everything was forwarded, a rule that forwards permits nothing more.
        (governed("forward", &[]), governed("deny", &[read])),
        (governed("forward", &[deny]), governed("deny", &[deny, read])),
        (governed("forward", &[]), governed("forward", &[deny])),
        (governed("forward", &[read]), governed("forward", &[read, deny])),
        (governed("deny", &[read]), governed("deny", &[deny, read])),
        (governed("deny", &[read]), governed("deny", &[])),
        (governed("forward", &[]), governed("forward", &[ask])),
        (governed("forward", &[read]), governed("forward", &[ask, read])),
        (governed("deny", &[read]), governed("deny", &["match: read, action: approve"])),
        (governed("forward", &[ask]), governed("forward", &["match: write, action: deny"])),
        (
            governed("deny", &["match: [a, b], action: forward"]),
            governed("deny", &["match: a, action: forward"]),
        ),
        (
            governed("forward", &["match: a, action: deny"]),
            governed("forward", &["match: [a, b], action: deny"]),
        ),
        (
            governed("deny", &["match: a, action: forward"]),
            governed("deny", &["match: a, action: forward, arguments: { path: \"/x/*\" }"]),
        ),
        (
            governed("forward", &["match: a, action: deny, arguments: { path: \"/x/*\" }"]),
            governed("forward", &["match: a, action: deny"]),
        ),
        (
            governed("deny", &["match: a, action: forward"]),
            governed("deny", &["match: a, source: s, action: forward"]),
        ),
    ] {
        one_way(&loose, &strict);
    }
}

#[test]
fn a_name_or_a_comment_is_no_change() {
    let plain = governed("deny", &["match: a, action: forward"]);
    let named = governed("deny", &["id: reads, match: a, action: forward, description: d"]);
    assert!(proven(&plain, &named) && proven(&named, &plain));
    assert!(proven(&plain, &format!("# why\n{plain}")));
}

#[test]
fn rules_of_which_it_cannot_be_shown_are_not_proven() {
    let deny = "match: rm*, action: deny";
    for (old, new) in [
        // With an approval before a denial, approvers can permit what was denied.
        (governed("deny", &[]), governed("deny", &["match: a, action: approve"])),
        (governed("forward", &[deny]), governed("forward", &["match: rm, action: approve", deny])),
        // A rule that moves may decide other calls.
        (
            governed("deny", &[deny, "match: \"*\", action: forward"]),
            governed("deny", &["match: \"*\", action: forward", deny]),
        ),
        (governed("forward", &[deny]), governed("forward", &["match: rm, action: deny"])),
        (governed("deny", &[]), governed("deny", &["match: a, action: forward"])),
        (
            governed("deny", &["match: a, action: forward"]),
            governed("deny", &["match: \"a*\", action: forward"]),
        ),
        (
            governed("forward", &["match: a, method: tools/call, action: deny"]),
            governed("forward", &["match: a, method: prompts/get, action: deny"]),
        ),
    ] {
        assert!(!proven(&old, &new), "proven:\n{old}\nto\n{new}");
    }
}

#[test]
fn everything_else_in_a_policy_counts_too() {
    let base = governed("forward", &[]);
    let with = |rest: &str| format!("{base}{rest}\n");
    let source = |expose: &str| with(&format!("sources: [{{ id: s, expose: {{ {expose} }} }}]"));
    for (loose, strict) in [
        (with("profile: development"), with("profile: production")),
        (source("mode: blocklist, tools: [a]"), source("mode: blocklist, tools: [a, b]")),
        (source("mode: allowlist, tools: [a, b]"), source("mode: allowlist, tools: [a]")),
        (with("sources: [{ id: s }]"), with("sources: [{ id: s, enabled: false }]")),
        (with("pins: { on_drift: warn }"), with("pins: { on_drift: deny }")),
    ] {
        one_way(&loose, &strict);
    }
    let workflow = |rest: &str| with(&format!("approval: {{ w: {{ {rest} }} }}"));
    // The approvers of a second workflow may decide, too.
    let escalating = |rest: &str| with(&format!("approval: {{ w: {{ {rest} }}, v: {{}} }}"));
    // A receiver of its links can approve.
    let channel = |url: &str| {
        let channels = format!("channels: {{ c: {{ type: ntfy, url: '{url}' }} }}");
        with(&format!("approval: {{ w: {{ channels: [c] }} }}\n{channels}"))
    };
    for (one, two) in [
        (workflow("timeout: 5m"), workflow("timeout: 6m")),
        (workflow("timeout: 5m"), workflow("timeout: 5m, approvers: [eve]")),
        (escalating(""), escalating("escalate: { after: 1m, to: v }")),
        (channel("http://a/"), channel("http://b/")),
        (workflow("timeout: 5m, on_timeout: deny"), workflow("timeout: 5m, on_timeout: approve")),
        (with("sources: [{ id: s }]"), with("sources: [{ id: s }, { id: t }]")),
        (with("recording: { enabled: true }"), with("recording: { enabled: false }")),
        (with("principal: { name: a }"), with("principal: { name: b }")),
        (with("activity: { retention: 10d }"), with("activity: { retention: 1d }")),
        // Redaction hides arguments from approvers and tapes.
        (with(""), with("redaction: { fields: [params.arguments] }")),
        (
            with("redaction: { fields: [params.token] }"),
            with("redaction: { fields: [params.token, params.arguments] }"),
        ),
    ] {
        assert!(!proven(&one, &two), "proven:\n{one}\nto\n{two}");
        assert!(proven(&one, &one) && proven(&two, &two));
    }
}

#[test]
fn cedar_tightens_by_more_forbids_and_fewer_permits() {
    let text = "schema: 1\ngovernance: { defaults: { action: policy, policy_id: p } }\n\
                cedar: { policies: [a.cedar] }\napproval: { w: { timeout: 5m } }\n";
    let proven = |old: &str, new: &str| {
        let (old, new) = (policy(text, &[("a.cedar", old)]), policy(text, &[("a.cedar", new)]));
        tightens(&old, &new).is_ok()
    };
    let permit = "permit(principal, action, resource);";
    let forbid = "forbid(principal, action, resource);";
    let asks = "@approval(\"w\") permit(principal, action, resource);";
    assert!(proven(permit, permit) && proven(permit, &format!("// more\n{permit}\n{forbid}")));
    assert!(proven(permit, forbid) && !proven(forbid, permit));
    assert!(!proven(&format!("{permit}{forbid}"), permit));
    assert!(!proven(asks, permit));
    // Without the policy that asks, the other one permits.
    assert!(!proven(&format!("{asks}{permit}"), permit));
}

#[test]
fn a_variable_is_compared_as_it_is_written_and_not_by_its_value() {
    let under = |path: &str, act: &str| {
        let rule =
            format!("match: a, action: {act}, arguments: {{ path: {{ under: \"{path}\" }} }}");
        governed("deny", &[&rule])
    };
    let (literal, variable) = (under("/x", "forward"), under("${X}", "forward"));
    assert!(proven(&variable, &variable), "nothing has changed");
    assert!(proven(&variable, &governed("deny", &[])), "a rule that forwards is gone");
    for (old, new) in [
        (literal.clone(), variable.clone()),
        (literal.clone(), under("${Y:-/x}", "forward")),
        (variable.clone(), literal.clone()),
        (variable.clone(), under("${X:-/}", "forward")),
        (under("${Y:-/x}", "forward"), under("${Y:-/x/}", "forward")),
        // Even where it could only refuse more.
        (governed("deny", &[]), under("${X}", "deny")),
        // Nothing is known about values that are not text.
        (
            governed("deny", &["match: a, action: approve"])
                + "approval: { default: { timeout: \"${T:-5m}\" } }\n",
            governed("deny", &[]) + "approval: { default: { timeout: \"${T:-5m}\" } }\n",
        ),
    ] {
        assert!(!proven(&old, &new), "proven:\n{old}\nto\n{new}");
    }
}

#[test]
fn a_variable_that_moves_to_another_rule_or_is_imitated_is_a_change() {
    let two = |one: &str, two: &str| {
        let rule = |name: &str, path: &str| {
            format!("match: {name}, action: deny, arguments: {{ path: {{ under: \"{path}\" }} }}")
        };
        governed("forward", &[&rule("a", one), &rule("b", two)])
    };
    assert!(!proven(&two("/x", "${X}"), &two("${X}", "/x")));
    let hash = blake3::hash(b"X").to_hex();
    let imitated = format!("/x\\uf8ff{}\\uf8ff", &hash[..16]);
    assert!(!proven(&two("/x", "${X}"), &two("/x", &imitated)));
}

#[test]
fn a_change_that_another_profile_shows_is_a_change() {
    let base = governed("deny", &["match: a, action: approve"]);
    let with = |rest: &str| format!("{base}{rest}\n");
    let masks = "profiles: { development: { pins: { on_drift: ignore } } }\n";
    let workflow = |on_timeout: &str, rest: &str| {
        with(&format!("approval: {{ default: {{ on_timeout: {on_timeout} }} }}\n{rest}"))
    };
    for (old, new) in [
        (with("profile: production"), with("profile: development")),
        (with(""), with("profile: development")),
        (
            with(&format!("pins: {{ on_drift: deny }}\n{masks}profile: development")),
            with(&format!("pins: {{ on_drift: ignore }}\n{masks}profile: development")),
        ),
        (with(""), with(masks)),
        // Production, which becomes active, is the looser one.
        (
            workflow(
                "deny",
                "profile: development\nprofiles: { production: { approval: { on_timeout: approve } } }",
            ),
            workflow(
                "deny",
                "profile: production\nprofiles: { production: { approval: { on_timeout: approve } } }",
            ),
        ),
    ] {
        assert!(!proven(&old, &new), "proven:\n{old}\nto\n{new}");
    }
}
