//! A scenario that changes while it is served.

use std::fs;

use serde_json::json;

use super::agent::ScenarioAgent;
use super::{calculator, serve};

fn text(agent: &mut ScenarioAgent) -> String {
    let answer = agent.call("add", &json!({}));
    answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_file_that_is_written_over_or_replaced_is_loaded_anew_and_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    fs::write(&file, calculator("one")).unwrap();
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &["--watch"]));
    assert_eq!(text(&mut agent), "one");
    fs::write(&file, calculator("second")).unwrap();
    agent.hears("reloaded the scenario");
    assert_eq!(text(&mut agent), "second");
    let beside = folder.path().join("s.yaml.new");
    fs::write(&beside, calculator("thirdly").replace("Adds.", "Adds more.")).unwrap();
    fs::rename(beside, &file).unwrap();
    agent.message("notifications/tools/list_changed");
    assert_eq!(text(&mut agent), "thirdly");
    let gone = agent.leave();
    assert_eq!(gone.code, Some(0));
    assert_eq!(gone.stderr.matches("reloaded the scenario").count(), 2, "{}", gone.stderr);
}

#[test]
fn a_broken_file_is_reported_and_the_old_scenario_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    fs::write(&file, calculator("one")).unwrap();
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &["--watch"]));
    fs::write(&file, "server: { name: s }\ntoolz: []\n").unwrap();
    agent.hears("the scenario continues unchanged");
    assert!(agent.complaints().contains("s.yaml:2:1: there is no key `toolz`"));
    assert_eq!(text(&mut agent), "one");
    fs::remove_file(&file).unwrap();
    agent.hears("no such file");
    assert_eq!(text(&mut agent), "one");
    fs::write(&file, calculator("two")).unwrap();
    agent.hears("reloaded the scenario");
    assert_eq!(text(&mut agent), "two");
    assert_eq!(agent.leave().code, Some(0));
}

#[test]
fn what_a_scenario_includes_is_watched_too() {
    let folder = tempfile::tempdir().unwrap();
    let main = calculator("{ $file: words.txt }");
    fs::write(folder.path().join("s.yaml"), main).unwrap();
    fs::write(folder.path().join("words.txt"), "one").unwrap();
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &["--watch"]));
    assert_eq!(text(&mut agent), "one");
    fs::write(folder.path().join("words.txt"), "another").unwrap();
    agent.hears("reloaded the scenario");
    assert_eq!(text(&mut agent), "another");
    assert_eq!(agent.leave().code, Some(0));
}
