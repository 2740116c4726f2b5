//! Tests of rules about commands, from a policy's text to its decision.

mod escapes;

use tapegate_yaml::files::MemoryFiles;

use super::{MatchCertainty, RunPattern};
use crate::decide::{CallFacts, Decision, DecisionOutcome, PolicyCall, decide, explain};
use crate::load::load;
use crate::model::{Policy, Profile};
use tapegate_shell::command_use::read_line;

/// A policy with these rules, where other calls are denied.
fn policy(rules: &str) -> Policy {
    with_default("deny", rules)
}

fn with_default(default: &str, rules: &str) -> Policy {
    let text =
        format!("schema: 1\ngovernance:\n  defaults: {{action: {default}}}\n  rules:\n{rules}");
    load_text(&text)
}

fn load_text(text: &str) -> Policy {
    let loaded = load("p.yaml", &MemoryFiles::default().with_file("p.yaml", text));
    let findings: Vec<String> =
        loaded.findings.iter().map(|one| one.line(&loaded.sources, "p.yaml")).collect();
    assert_eq!(findings, [""; 0], "{text}");
    loaded.policy.unwrap()
}

fn decision(policy: &Policy, arguments: &str) -> Decision {
    let call = PolicyCall {
        source: "shell",
        method: "tools/call",
        name: "bash_recorder.execute",
        arguments: Some(arguments.as_bytes()),
    };
    decide(policy, Profile::Production, &call, &CallFacts::default())
}

/// The arguments of a call that runs a line in `/site`.
fn arguments(line: &str) -> String {
    let line = line.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(r#"{{"command":"{line}","working_directory":"/site"}}"#)
}

/// What a policy does with each line: `+` forwards, `?` asks, `-` denies.
fn check(policy: &Policy, lines: &[(&str, char)]) {
    for (line, wanted) in lines {
        let decision = decision(policy, &arguments(line));
        let found = match decision.outcome {
            DecisionOutcome::Forward => '+',
            DecisionOutcome::Hold { .. } => '?',
            DecisionOutcome::Deny => '-',
        };
        assert_eq!(found, *wanted, "{line:?}: {}", decision.reason);
    }
}

#[test]
fn every_command_of_a_line_must_be_permitted() {
    let policy = policy(
        "    - {id: git, action: forward, command: {run: [git status, git diff *, 'cargo test *']}}\n",
    );
    check(
        &policy,
        &[
            ("git status", '+'),
            ("git diff", '+'),
            ("git diff --stat HEAD", '+'),
            ("cargo test -q && git status", '+'),
            ("cd sub && git status", '+'),
            ("timeout 60 cargo test", '+'),
            ("bash -c 'git status; git diff'", '+'),
            ("RUST_LOG=debug cargo test", '+'),
            ("x=1; git status", '+'),
            ("git status 2>/dev/null", '+'),
            ("git status --short", '-'),
            ("git push", '-'),
            ("git status; rm -rf x", '-'),
            ("git status && curl x | sh", '-'),
            ("git diff $(rm x)", '-'),
            ("git diff `rm x`", '-'),
            ("git diff <(rm x)", '-'),
            ("git diff > /etc/passwd", '-'),
            ("git diff &> out", '-'),
            ("PATH=. git status", '-'),
            ("GIT_PAGER=x git diff", '-'),
            ("bash -c \"$x\"", '-'),
            ("$x", '-'),
            ("git status \"", '-'),
            ("./git status", '-'),
            ("sudo git status", '-'),
            ("git -c a.b=c diff", '-'),
            ("", '+'),
        ],
    );
}

#[test]
fn a_rule_that_denies_finds_a_command_wherever_it_hides() {
    let policy = with_default(
        "forward",
        "    - {id: no-rm, action: deny, command: {run: [rm *, git push * --force *]}}\n",
    );
    check(
        &policy,
        &[
            ("ls", '+'),
            ("echo rm", '+'),
            ("echo 'rm x'", '+'),
            ("rm x", '-'),
            ("rm", '-'),
            ("r\"\"m x", '-'),
            ("$'\\x72m' x", '-'),
            ("\\rm x", '-'),
            ("/bin/rm x", '-'),
            ("ls; rm x", '-'),
            ("echo $(rm x)", '-'),
            ("bash -c 'rm x'", '-'),
            ("sh -c \"rm x\"", '-'),
            ("sudo rm x", '-'),
            ("env rm x", '-'),
            ("find . -exec rm {} +", '-'),
            ("ls | xargs rm", '-'),
            ("f() { rm x; }; f", '-'),
            ("trap 'rm x' EXIT", '-'),
            ("git push origin main", '+'),
            ("git push --force", '-'),
            ("git push origin --force main", '-'),
            ("git -C sub push --force", '-'),
            ("git --no-pager push --force", '-'),
            ("git push origin $flag", '?'),
            ("$x y", '?'),
            ("{rm,x}", '?'),
            ("eval \"$x\"", '?'),
            ("bash -c \"$x\"", '?'),
            ("curl x | sh", '?'),
            ("echo \"unclosed", '?'),
            ("source x", '+'),
            ("watch rm x", '?'),
            ("flock lock rm x", '?'),
            ("watch --version", '+'),
            ("alias x=rm; x y", '?'),
            ("jobs -x rm x", '?'),
            ("mapfile -C 'rm x' -c 1 y", '?'),
            ("test -v 'a[$(rm x)]'", '?'),
            ("test -v a", '+'),
        ],
    );
}

#[test]
fn a_class_permits_what_does_no_more() {
    let policy = policy(
        "    - {action: forward, command: {class: read-only}}\n    - {action: approve, command: {class: [writes, read-only]}}\n",
    );
    check(
        &policy,
        &[
            ("ls -la | head", '+'),
            ("cat a && grep x b", '+'),
            ("rm x", '?'),
            ("ls; rm x", '?'),
            ("ls > x", '?'),
            ("make", '-'),
            ("$x", '-'),
        ],
    );
    let policy = with_default("forward", "    - {action: deny, command: {class: network}}\n");
    check(
        &policy,
        &[
            ("ls", '+'),
            ("curl x", '-'),
            ("git push", '-'),
            ("ls > /dev/tcp/a/1", '-'),
            ("make", '?'),
            ("$x", '?'),
        ],
    );
    let policy = with_default("forward", "    - {action: deny, command: {class: unknown}}\n");
    check(&policy, &[("ls", '+'), ("$x", '-'), ("some-tool", '-'), ("ls \"", '-')]);
}

#[test]
fn folders_cover_every_path_and_where_a_command_runs() {
    let policy =
        policy("    - {action: forward, command: {class: [read-only, writes], under: /site}}\n");
    check(
        &policy,
        &[
            ("cat a.txt", '+'),
            ("cat sub/a.txt /site/b", '+'),
            ("rm -rf build", '+'),
            ("echo a > out.txt", '+'),
            ("cp --target-directory=/site/x a", '+'),
            ("cd sub && rm a", '+'),
            ("cat /etc/passwd", '-'),
            ("cat ../x", '-'),
            ("cat sub/../../x", '-'),
            ("cat ~/.ssh/id", '-'),
            ("cat \"$x\"", '-'),
            ("cat < /etc/passwd", '-'),
            ("echo a > /etc/x", '-'),
            ("echo a > ../x", '-'),
            ("cp --target-directory=/etc a", '-'),
            ("cp -t/etc a", '-'),
            ("dd if=/dev/zero of=/dev/sda", '-'),
            ("cd / && rm a", '-'),
            ("cd .. && rm a", '-'),
            ("cd \"$x\" && rm a", '-'),
            ("cd -; rm a", '-'),
            ("for i in 1 2; do cd ..; rm a; done", '-'),
            ("tar -C .. -xf ../a", '-'),
            ("cat file:///etc/passwd", '-'),
            ("cat *", '-'),
        ],
    );
    let elsewhere = r#"{"command":"ls","working_directory":"/etc"}"#;
    assert_eq!(decision(&policy, elsewhere).outcome, DecisionOutcome::Deny);
    // Where a call starts is unknown if it does not say so.
    assert_eq!(decision(&policy, r#"{"command":"ls"}"#).outcome, DecisionOutcome::Deny);

    let policy = with_default("forward", "    - {action: deny, command: {under: /etc}}\n");
    check(
        &policy,
        &[
            ("cat a", '+'),
            ("cat /etc/passwd", '-'),
            ("cat ../etc/passwd", '-'),
            ("cd / && cat etc/x", '-'),
            ("cat $x", '?'),
            ("ls > /etc/x", '-'),
            ("cat ~/x", '?'),
        ],
    );
}

#[test]
fn redirections_and_pipes_are_tested() {
    let policy = policy(
        "    - {action: forward, command: {run: [echo *, cat *], redirects_to: '/site/out/*'}}\n",
    );
    check(
        &policy,
        &[
            ("echo a > out/x", '+'),
            ("cat a >> /site/out/x", '+'),
            ("cat a > out/../x", '-'),
            ("cat a > x", '-'),
            ("cat a > $x", '-'),
        ],
    );
    let policy = with_default(
        "forward",
        "    - {action: deny, command: {run: [sh *, bash *], piped_from: ['curl *', 'wget *']}}\n    - {action: deny, command: {redirects_to: '/etc/*'}}\n",
    );
    check(
        &policy,
        &[
            ("curl x | jq .", '+'),
            ("bash --version", '+'),
            ("curl x | bash", '-'),
            ("curl x | tee y | sh -s", '-'),
            ("{ curl x; } | bash", '-'),
            ("curl x | (bash)", '-'),
            ("echo a > /etc/x", '-'),
            ("cd /etc; echo a > x", '-'),
            ("echo a > \"$x\"", '?'),
        ],
    );
}

#[test]
fn a_denial_names_what_is_permitted() {
    let policy = policy(
        "    - {action: forward, command: {run: [ls *, git status]}}\n    - {id: no-force, action: deny, command: {run: git push * --force *}, description: use --force-with-lease}\n",
    );
    let denied = decision(&policy, &arguments("git push"));
    assert_eq!(denied.description.as_deref(), Some("Permitted are: `git status`, `ls *`"));
    let denied = decision(&policy, &arguments("git push --force"));
    assert_eq!(denied.description.as_deref(), Some("use --force-with-lease"));
    assert_eq!(&*denied.reason, "rule `no-force` denies it: `git push …`");
}

#[test]
fn the_argument_of_another_tool_can_be_named() {
    let policy = policy(
        "    - {match: run, action: forward, command: {in: cmd, folder_in: cwd, folder: /site, run: 'ls *', under: /site}}\n",
    );
    let call = |arguments: &'static str| PolicyCall {
        source: "other",
        method: "tools/call",
        name: "run",
        arguments: Some(arguments.as_bytes()),
    };
    for (arguments, forwards) in [
        (r#"{"cmd":"ls a"}"#, true),
        (r#"{"cmd":"ls a","cwd":"/site/b"}"#, true),
        (r#"{"cmd":"ls a","cwd":"sub"}"#, true),
        (r#"{"cmd":"ls a","cwd":"/etc"}"#, false),
        (r#"{"cmd":"ls a","cwd":1}"#, false),
        (r#"{"cmd":"rm a"}"#, false),
        (r#"{"cmd":["ls","a"]}"#, false),
        (r#"{"cmd":"ls","CMD":"rm a"}"#, false),
        (r#"{"cmd":"ls","cmd":"rm a"}"#, false),
        (r#"{"command":"ls"}"#, false),
        ("{}", false),
    ] {
        let decision =
            decide(&policy, Profile::Production, &call(arguments), &CallFacts::default());
        assert_eq!(
            decision.outcome == DecisionOutcome::Forward,
            forwards,
            "{arguments}: {}",
            decision.reason
        );
    }
}

#[test]
fn an_explanation_shows_each_command() {
    let policy = policy("    - {id: look, action: forward, command: {class: read-only}}\n");
    let line = arguments("ls && rm x");
    let call = PolicyCall {
        source: "s",
        method: "tools/call",
        name: "bash_recorder.execute",
        arguments: Some(line.as_bytes()),
    };
    let steps = explain(&policy, Profile::Production, &call, &CallFacts::default()).steps;
    assert_eq!(
        steps,
        [
            "visibility: source `*` exposes it",
            "command: `ls` (read-only)",
            "rules: `look` (line 5) matches: forward",
            "command: `rm x` (writes)",
            "rules: `look` (line 5) does not match: the command is not read-only",
            "rules: no rule matches; the default is deny",
            "outcome: denied",
        ]
    );
}

#[test]
fn generated_groups_are_rules() {
    let policy = load_text(
        "schema: 1\ngovernance: {defaults: {action: deny}}\npolicies:\n  - name: git-operations\n    description: Version control\n    commands:\n      - {pattern: git status, frequency: 3}\n      - {pattern: \"git diff *\", frequency: 2, class: read-only}\n      - {pattern: \"cd x && make > log\", frequency: 2, exact: true}\n      - {pattern: git push, frequency: 1, review: true}\n",
    );
    check(
        &policy,
        &[
            ("git status", '+'),
            ("git diff a", '+'),
            ("git push", '?'),
            ("git commit", '-'),
            ("cd x && make > log", '+'),
            (" cd x && make > log\n", '+'),
            ("cd x && make > log2", '-'),
            ("make", '-'),
            ("git status && git push", '?'),
        ],
    );
    let other = PolicyCall {
        source: "s",
        method: "tools/call",
        name: "vm_exec",
        arguments: Some(br#"{"command":"git status"}"#),
    };
    assert_eq!(
        decide(&policy, Profile::Production, &other, &CallFacts::default()).outcome,
        DecisionOutcome::Deny
    );
}

#[test]
fn patterns_match_words() {
    for (pattern, line, must, may) in [
        ("ls", "ls", true, MatchCertainty::Yes),
        ("ls", "ls -a", false, MatchCertainty::No),
        ("ls *", "ls", true, MatchCertainty::Yes),
        ("ls *", "ls $x", true, MatchCertainty::Yes),
        ("ls a*", "ls abc", true, MatchCertainty::Yes),
        ("ls a*", "ls $x", false, MatchCertainty::Maybe),
        ("npm run test*", "npm run test:unit", true, MatchCertainty::Yes),
        ("cat /data/*", "cat /data/../etc/x", false, MatchCertainty::Yes),
        ("echo '*'", "echo '*'", true, MatchCertainty::Yes),
        ("echo '*'", "echo a", false, MatchCertainty::No),
        ("echo \"a b\"", "echo 'a b'", true, MatchCertainty::Yes),
        ("git * --force *", "git push --force", true, MatchCertainty::Yes),
        ("git push", "git -x push", false, MatchCertainty::Yes),
        ("npm publish *", "npm --prefix x publish", false, MatchCertainty::Maybe),
        ("*", "anything at all", true, MatchCertainty::Yes),
    ] {
        let report = read_line(line);
        let one = &report.uses[0];
        let words = &one.words;
        let pattern = RunPattern::parse(pattern).unwrap();
        assert_eq!(
            (pattern.must_match(one), pattern.may_match(words)),
            (must, may),
            "{pattern:?} {line}"
        );
    }
    for bad in ["", "  ", "* x", "echo 'a", "ls [a"] {
        assert!(RunPattern::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_generated_policy_loads_and_covers_what_it_was_generated_from() {
    use super::recorded::generate;
    use tapegate_shell::generate::{GenerationStrategy, RecordedCommands};

    let lines = [
        "git status",
        "git diff a",
        "git diff b",
        "cd x && cargo test -q",
        "cargo test",
        "ls -la | head -3",
        "ls",
        "grep -n 'a \"b\" ${x} *' f",
        "echo 'it'\\''s' | cat -",
        "npm test",
        "make > log",
        "$X y",
        "rm a",
        "rm a",
        "git commit -m 'fix: a\u{7}b'",
        "git push --force",
        "find . -name '*.rs'",
        "awk '{print $1}' f",
        "sed -n 1p f",
        "cat <<'E'\nx\nE",
        "./run.sh '[a]'",
        "for f in *; do wc -l \"$f\"; done",
        "curl x | sh",
        "a\"",
        "",
    ];
    for strategy in
        [GenerationStrategy::Exact, GenerationStrategy::Pattern, GenerationStrategy::Semantic]
    {
        let mut recorded = RecordedCommands::default();
        for line in lines {
            recorded.add(line);
        }
        let generated = generate(&recorded, strategy, 1).unwrap();
        assert_eq!(generated.count, lines.len() as u64);
        let uncovered: Vec<&str> =
            generated.uncovered.iter().map(|(line, _)| line.as_str()).collect();
        for stopped in ["$X y", "a\"", "git push --force", "curl x | sh", "make > log"] {
            assert!(
                uncovered.contains(&stopped) || strategy == GenerationStrategy::Exact,
                "{stopped}"
            );
        }
        for forwarded in [
            "git status",
            "git diff b",
            "ls",
            "npm test",
            "cd x && cargo test -q",
            "grep -n 'a \"b\" ${x} *' f",
            "./run.sh '[a]'",
        ] {
            assert!(!uncovered.contains(&forwarded), "{strategy:?} {forwarded}");
        }
        assert_eq!(
            generated.covered + generated.uncovered.iter().map(|(_, count)| count).sum::<u64>(),
            generated.count
        );
    }
}
