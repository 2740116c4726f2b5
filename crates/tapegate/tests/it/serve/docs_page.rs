//! The page about scenarios: every scenario on it can be run, and it lists the whole library.

use std::fs;
use std::path::Path;

use crate::support::tapegate;

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join("docs/serve.md")).unwrap()
}

#[test]
fn every_scenario_of_the_page_is_without_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    let page = page();
    let blocks: Vec<&str> = page.split("```yaml scenario\n").skip(1).collect();
    assert!(blocks.len() >= 7);
    for block in blocks {
        let (text, _) = block.split_once("\n```").unwrap();
        fs::write(&file, text).unwrap();
        let done = tapegate().arg("check").arg("--strict").arg(&file).output().unwrap();
        let output_text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{output_text}\n{text}");
    }
}

#[test]
fn the_page_names_every_scenario_of_the_library() {
    let done = tapegate().args(["serve", "--list"]).output().unwrap();
    let page = page();
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
