//! Compares complete texts with files under `tests/golden/views`, so that every change is visible
//! in review. `UPDATE_GOLDEN=1` rewrites them.

use std::fs;
use std::path::Path;

/// Asserts that `text` equals the golden file.
#[track_caller]
pub(crate) fn assert_golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/views").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    let message = "the view has changed; if it is meant so, run with UPDATE_GOLDEN=1";
    assert_eq!(text, golden, "{name}: {message}");
}
