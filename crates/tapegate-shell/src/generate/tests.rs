//! Tests of generated patterns.

use super::*;

fn recorded(lines: &[(&str, usize)]) -> RecordedCommands {
    let mut all = RecordedCommands::default();
    for (line, count) in lines {
        (0..*count).for_each(|_| all.add(line));
    }
    all
}

/// The patterns with their frequencies; those for review begin with `!`.
fn patterns(strategy: GenerationStrategy, lines: &[(&str, usize)], min: u64) -> Vec<String> {
    let groups = recorded(lines).groups(strategy, min);
    let show = |one: &CommandPattern| {
        format!("{}{} {}", if one.review { "!" } else { "" }, one.pattern, one.frequency)
    };
    groups.iter().flat_map(|group| group.commands.iter().map(show)).collect()
}

#[test]
fn commands_that_differ_get_a_star_and_equal_ones_stay_literal() {
    let lines = [
        ("git status", 3),
        ("git diff a", 2),
        ("git diff --stat", 1),
        ("cd sub && npm test", 2),
        ("npm run build", 1),
        ("npm run lint -- --fix", 1),
        ("npm run lint", 1),
        ("timeout 60 cargo test -q", 1),
        ("RUST_LOG=1 cargo test a::b", 1),
        ("git commit -m 'a b'", 2),
        ("git -C sub status", 2),
        ("ls -la | wc -l", 1),
        ("ls src", 1),
    ];
    assert_eq!(
        patterns(GenerationStrategy::Pattern, &lines, 2),
        [
            "git diff * 3",
            "git status 3",
            "git -C sub status 2",
            "git commit -m 'a b' 2",
            "npm run lint * 2",
            "npm test 2",
            "cargo test * 2",
            "ls * 2",
        ]
    );
}

#[test]
fn programs_that_run_anything_stay_literal_and_are_reviewed() {
    let lines = [
        ("sudo ls", 2),
        ("sudo rm x", 2),
        ("bash -c 'ls'", 2),
        ("python3 a.py", 2),
        ("python3 b.py", 2),
        ("rm a", 2),
        ("rm b", 2),
        ("find . -delete", 2),
        ("xargs rm < a", 2),
        ("ls > out", 2),
        ("$x y", 5),
        ("eval \"$x\"", 5),
        ("echo \"", 5),
        ("git push --force", 2),
        ("curl a | sh", 2),
    ];
    let found = patterns(GenerationStrategy::Pattern, &lines, 2);
    let starred: Vec<&String> = found.iter().filter(|one| one.contains('*')).collect();
    // Only `ls`, which `sudo ls` and `bash -c ls` run, and `curl` do no harm.
    assert_eq!(starred, [""; 0]);
    for wanted in
        ["!sudo ls 2", "!python3 a.py 2", "!rm a 2", "!find . -delete 2", "!git push --force 2"]
    {
        assert!(found.iter().any(|one| one == wanted), "{wanted}: {found:?}");
    }
}

#[test]
fn whole_lines_are_counted_as_text() {
    let lines = [("git add . && git commit -m x", 3), ("ls", 1), ("$x", 2)];
    let found = patterns(GenerationStrategy::Exact, &lines, 2);
    assert_eq!(found, ["git add . && git commit -m x 3", "!$x 2"]);
}

#[test]
fn the_semantic_strategy_groups_by_effect() {
    let lines = [
        ("cat a.txt", 2),
        ("cat b.txt", 2),
        ("npm install x", 2),
        ("git commit -m x", 2),
        ("kill 1", 2),
        ("cp a /etc/b", 2),
        ("cp a b", 1),
        ("curl x", 2),
    ];
    let groups = recorded(&lines).groups(GenerationStrategy::Semantic, 2);
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "read-only",
            "writes-outside",
            "network",
            "package-install",
            "process-control",
            "vcs-history"
        ]
    );
    assert_eq!(
        groups[0].commands[0].meaning,
        Some(("low", "only reads; arguments seen: <file>".to_owned()))
    );
}

#[test]
fn equal_input_gives_equal_output_in_any_order() {
    let mut lines = vec![
        ("git status", 3),
        ("ls -la", 2),
        ("ls", 2),
        ("cat 'a b'", 2),
        ("echo \"${x}\n\" | cat", 2),
    ];
    let first = render_yaml(
        &["x\ny".to_owned()],
        &recorded(&lines).groups(GenerationStrategy::Pattern, 1),
        &[],
    );
    lines.reverse();
    let second = render_yaml(
        &["x\ny".to_owned()],
        &recorded(&lines).groups(GenerationStrategy::Pattern, 1),
        &[],
    );
    assert_eq!(first, second);
    assert!(first.starts_with("# x y\n\npolicies:\n  - name: file-operations\n"), "{first}");
}
