//! The text of a policy generated from a session. `UPDATE_GOLDEN=1` rewrites it.

#[path = "../../src/generate/tests/sample.rs"]
mod sample;

use std::fs;
use std::path::Path;

use sample::sample;
use tapegate_policy::generate::{GenerateOptions, RecordedTraffic, generate};

#[expect(clippy::disallowed_methods, reason = "goldens are files")]
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/generated_policies").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "{name} is old; UPDATE_GOLDEN=1");
}

#[test]
fn what_is_made_of_a_session_is_as_it_was() {
    let head = vec!["A test.".to_owned()];
    let rules =
        generate(&sample(), &GenerateOptions { head: head.clone(), ..GenerateOptions::default() })
            .unwrap();
    compare("rules.yaml", &rules.policy);
    let wish = GenerateOptions { head, cedar: Some("observed.cedar".to_owned()), home: None };
    let asked = generate(&sample(), &wish).unwrap();
    compare("asking.yaml", &asked.policy);
    compare("observed.cedar", &asked.cedar.unwrap());
}
