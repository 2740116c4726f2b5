//! A policy that appears where another one was accepted: it takes effect if it permits nothing
//! more; otherwise no session starts until a person accepts it. It is never ignored silently.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::setup::{FORWARD, answer, ask, call, events, rules};
use crate::support::{RunningSession, SessionSetup, accept_policy, shim, tapegate};

const DENY: &str = "schema: 1\ngovernance: { defaults: { action: deny } }\n";
const READING: &str = "schema: 1\ngovernance:\n  defaults: { action: deny }\n  rules:\n    - { match: \"read_*\", action: forward }\n";

fn passes(run: &mut RunningSession, id: u32, tool: &str) -> bool {
    run.send(call(id, tool).as_bytes());
    answer(run, id)["result"].is_object()
}

/// A user's home: two projects, a config folder, and state that both share.
struct TestHome(tempfile::TempDir);

impl TestHome {
    /// With a user-wide policy that was used once, in a project without one.
    fn with_user_wide(policy: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.put("config/tapegate/tapegate.yaml", policy);
        fs::create_dir(home.path("other")).unwrap();
        let run = home.session("other").start();
        run.end_of_input().exits(0);
        home
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn session(&self, project: &str) -> SessionSetup {
        let at = |name: &str| self.path(name).display().to_string();
        let setup = shim("", &["serve"]).within(&self.path(project));
        setup.env("TAPEGATE_HOME", &at("state")).env("XDG_CONFIG_HOME", &at("config"))
    }

    fn run(&self, project: &str, arguments: &[&str]) -> Output {
        tapegate()
            .args(arguments)
            .env("TAPEGATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .current_dir(self.path(project))
            .output()
            .unwrap()
    }

    /// Asserts that a session is refused, and the client is told why and what to do.
    #[track_caller]
    fn is_refused(&self, setup: SessionSetup) {
        let mut run = setup.start();
        run.send(ask(1, "initialize").as_bytes());
        let told = answer(&run, 1)["error"]["message"].as_str().unwrap().to_owned();
        assert!(told.contains("was never accepted") && told.contains("policy accept"), "{told}");
        assert!(!passes(&mut run, 2, "rm"));
        run.end_of_input().exits(2).complains("was never accepted");
    }
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_projects_own_stricter_policy_governs_although_a_user_wide_one_was_accepted() {
    for (user_wide, own) in [(FORWARD, DENY), (FORWARD, READING), (READING, DENY)] {
        let home = TestHome::with_user_wide(user_wide);
        home.put("project/tapegate.yaml", own);
        let explained = home.run("project", &["policy", "explain", "rm"]);
        assert!(!words(&explained).contains("never accepted"), "{}", words(&explained));
        let mut run = home.session("project").flags(&["--require-policy"]).start();
        assert!(!passes(&mut run, 1, "rm"), "{user_wide} {own}");
        assert_eq!(passes(&mut run, 2, "read_file"), own == READING);
        run.end_of_input().exits(0).complains("is new and replaces the accepted policy");
        let accepted = |event: &serde_json::Value| event["event"] == "accepted";
        let logged = events(&home.path("")).into_iter().filter(accepted).count();
        assert_eq!(logged, 2, "the user-wide one, and this one");
        // The other project is governed as before.
        let mut run = home.session("other").start();
        assert_eq!(passes(&mut run, 1, "rm"), user_wide == FORWARD);
        run.end_of_input().exits(0);
    }
}

#[test]
fn a_policy_that_may_permit_more_starts_nothing_until_a_person_accepts_it() {
    let home = TestHome::with_user_wide(&rules(&[("rm", "deny")]));
    home.put("project/tapegate.yaml", READING);
    home.is_refused(home.session("project").flags(&["--require-policy"]));
    home.is_refused(home.session("project"));
    for command in [&["check", "tapegate.yaml"][..], &["policy", "explain", "rm"]] {
        let told = words(&home.run("project", command));
        assert!(told.contains("never accepted") && told.contains("config/tapegate"), "{told}");
    }
    let project = home.path("project");
    let done = accept_policy(&project, &home.path("state"), &[]);
    assert_eq!(done.status.code(), Some(0), "{}", words(&done));
    let mut run = home.session("project").start();
    assert!(passes(&mut run, 1, "read_file") && !passes(&mut run, 2, "rm"));
    run.end_of_input().exits(0);
}

#[test]
fn a_policy_put_nearer_or_under_the_better_name_gets_nobody_out_of_the_accepted_one() {
    let home = TestHome::with_user_wide(DENY);
    home.put("project/thoughtgate.yaml", DENY);
    let mut run = home.session("project").start();
    assert!(!passes(&mut run, 1, "rm"));
    run.end_of_input().exits(0);
    home.put("project/tapegate.yaml", FORWARD);
    home.is_refused(home.session("project"));
    fs::remove_file(home.path("project/tapegate.yaml")).unwrap();
    home.put("project/below/tapegate.yaml", FORWARD);
    home.is_refused(home.session("project/below"));
}

#[test]
fn naming_a_policy_that_is_looked_for_accepts_nothing_that_finding_it_would_not() {
    let home = TestHome::with_user_wide(DENY);
    home.put("project/tapegate.yaml", FORWARD);
    let there = home.path("project/tapegate.yaml").display().to_string();
    for (folder, name) in [("project", "tapegate.yaml"), ("other", &there)] {
        home.is_refused(home.session(folder).flags(&["--config", name]));
    }
    home.is_refused(home.session("project"));
    // A file that is not looked for is used only if it is named.
    home.put("project/ci.yaml", FORWARD);
    let mut run = home.session("project").flags(&["--config", "ci.yaml"]).start();
    assert!(passes(&mut run, 1, "rm"));
    run.end_of_input().exits(0);
}

#[test]
fn a_path_that_each_process_reads_otherwise_accepts_nothing_elsewhere() {
    let home = TestHome(tempfile::tempdir().unwrap());
    for (project, policy) in [("a", DENY), ("evil", FORWARD), ("b", DENY)] {
        home.put(&format!("{project}/tapegate.yaml"), policy);
    }
    let denied = |project: &str| {
        let mut run = home.session(project).start();
        assert!(!passes(&mut run, 1, "rm"), "{project}");
        run.end_of_input().exits(0);
    };
    denied("a");
    let own = Path::new("/proc/self/cwd/tapegate.yaml");
    let run = home.session("evil").flags(&["--config", &own.display().to_string()]).start();
    run.end_of_input().exits(0);
    ["b", "a"].into_iter().for_each(denied);
}

#[test]
fn a_policy_whose_file_is_gone_is_named_by_those_who_explain() {
    let home = TestHome::with_user_wide(FORWARD);
    home.put("project/tapegate.yaml", DENY);
    home.session("project").start().end_of_input().exits(0);
    fs::remove_file(home.path("project/tapegate.yaml")).unwrap();
    let told = words(&home.run("project", &["policy", "explain", "rm"]));
    assert!(told.contains("whose file is gone"), "{told}");
    let mut run = home.session("project").start();
    assert!(!passes(&mut run, 1, "rm"));
    run.end_of_input().exits(0);
}
