//! The file that `tapegate init` writes: what is refused, and what is printed for another one.

use std::fs;

use super::{TAPE, put, said, tapegate};

#[test]
fn a_tape_is_never_overwritten_by_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // By its name and by its content.
    for name in ["c.jsonl", "recording"] {
        put(folder, name, TAPE);
        for force in [&[][..], &["--force"]] {
            let run = tapegate(folder, &[&["init"], force, &["--from-tapes", name]].concat());
            assert_eq!(run.status.code(), Some(64));
            let flag = if force.is_empty() { "" } else { "--force " };
            let expected = format!(
                "error: `{name}` is a tape, not a policy file\n\nhint: to make a policy from it: \
                 `tapegate init {flag}--from-tape {name}`\n"
            );
            assert_eq!(String::from_utf8_lossy(&run.stderr), expected);
        }
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), TAPE);
        let run = tapegate(folder, &["policy", "generate", name, "-o", name, "--force"]);
        assert_eq!(run.status.code(), Some(64));
        let text = String::from_utf8_lossy(&run.stderr);
        assert!(text.starts_with(&format!("error: `{name}` is a tape, not a policy")), "{text}");
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), TAPE);
    }
    let run = tapegate(folder, &["init", "new.jsonl"]);
    let expected = "error: `new.jsonl` has the name of a tape, not of a policy file\n\nhint: ";
    assert!(String::from_utf8_lossy(&run.stderr).starts_with(expected), "{run:?}");
    assert!(!folder.join("new.jsonl").exists() && !folder.join(".tapegate").exists());
}

#[test]
fn a_folder_is_not_created_for_a_policy_but_for_the_users_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = tapegate(folder, &["init", "nope/x.yaml"]);
    assert_eq!(run.status.code(), Some(3));
    let (file, nope) = (folder.join("nope/x.yaml"), folder.join("nope"));
    assert_eq!(
        String::from_utf8_lossy(&run.stderr),
        format!(
            "error: cannot write `{}`: there is no folder `{nope}`\n\nhint: create it first: mkdir -p {nope}\n",
            file.display(),
            nope = nope.display()
        )
    );
    assert!(!nope.exists());
    let user_wide = folder.join("home/.config/tapegate/tapegate.yaml");
    assert!(tapegate(folder, &["init", user_wide.to_str().unwrap()]).status.success());
    assert!(user_wide.is_file());
}

#[test]
fn what_is_printed_for_another_policy_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = r#"{"mcpServers":{"files":{"command":"npx","args":["-y","files"]}}}"#;
    put(folder, ".mcp.json", config);
    let text = said(&tapegate(folder, &["init", "ci.yaml"]));
    let policy = folder.canonicalize().unwrap().join("ci.yaml");
    for expected in [
        format!("shim --require-policy --config {} --server-id files -- npx", policy.display()),
        "  tapegate wrap --config ci.yaml -- claude\n".to_owned(),
        "  tapegate agents install --config ci.yaml claude-code\n".to_owned(),
        "  tapegate check ci.yaml\n".to_owned(),
        "  tapegate policy pin --config ci.yaml --server-id files -- npx -y files\n".to_owned(),
        "  tapegate policy accept ci.yaml\n".to_owned(),
        "  tapegate init --force --from-tape TAPE ci.yaml\n".to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected}\n--\n{text}");
    }
    // What is printed can be run.
    for line in text.lines().filter_map(|line| line.strip_prefix("  tapegate ")) {
        let help: Vec<&str> = line.split(' ').take_while(|word| *word != "--").collect();
        let run = tapegate(folder, &[&help[..], &["--help"]].concat());
        assert!(run.status.success(), "{line}: {run:?}");
    }
    assert!(!said(&tapegate(folder, &["init"])).contains("--config"));
}
