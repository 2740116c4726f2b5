//! What it costs to load a scenario: 1,000 tools, and texts that are as large as they may be.
//!
//! `cargo bench -p tapegate-scenario --bench load`. Times are the best of several rounds, because
//! the machines this runs on are shared.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::time::Instant;

use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::load::{LoadOptions, ScenarioFileKind, ScenarioLimits, load};

/// One file.
struct BenchFile(String);

impl Files for BenchFile {
    fn open(&self, path: &str, _: usize) -> Result<OpenedFile, FileError> {
        Ok(OpenedFile { path: path.to_owned(), bytes: self.0.clone().into_bytes() })
    }

    fn open_within(&self, _: &str, _: &str, _: usize) -> Result<OpenedFile, FileError> {
        Err(FileError::Missing)
    }

    fn folder_of(&self, _: &str) -> String {
        ".".to_owned()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn main() {
    let answers = "\n    response:\n      content:\n        - type: text\n          text: ";
    let quoted = format!("\"{}\"", "a line\\n".repeat(1 << 20));
    let block = format!("|\n{}", "            a line of text with words\n".repeat(270_000));
    let with = |text: &str| format!("server: {{name: s}}\ntools:\n{}{answers}{text}\n", tool(1));
    let many_keys: String = (0..400_000).map(|n| format!("        key{n}: {n}\n")).collect();
    let list = format!("[{}]", "1, ".repeat(300_000));
    let meta = |text: &str| format!("metadata:\n  x:\n{text}\nserver: {{name: s}}\n");
    for (name, text) in [
        ("1,000 tools", tools(1_000)),
        ("1,000 tools with variables", tools(1_000).replace("Result 1 ", "Result ${args.path} ")),
        ("a quoted text of 8 MB", with(&quoted)),
        ("a block of 10 MB", with(&block)),
        ("400,000 keys", meta(&many_keys)),
        ("a list of 300,000", meta(&format!("    {list}"))),
        ("a comment of 10 MB", format!("# {}\nserver: {{name: s}}\n", "x".repeat(10_000_000))),
        ("dollars, 9 MB", format!("server: {{name: s}}\n# {}\n", "${A}x".repeat(1_800_000))),
    ] {
        let files = BenchFile(text);
        let limits = ScenarioLimits { config_bytes: 20 << 20, ..ScenarioLimits::default() };
        let how =
            LoadOptions { files: &files, library: None, limits, form: ScenarioFileKind::Scenario };
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            let loaded = load("main.yaml", &how);
            best = best.min(start.elapsed().as_secs_f64());
            assert!(loaded.scenario.is_some(), "{name}: {:?}", loaded.findings.first());
        }
        let bytes = files.0.len() as f64;
        println!(
            "{name:<28} {:>9.0} bytes {:>8.1} ms {:>7.1} MB/s",
            bytes,
            best * 1e3,
            bytes / best / 1e6
        );
    }
}

fn tools(count: usize) -> String {
    let mut text = String::from("server: {name: s}\ntools:\n");
    for number in 0..count {
        text += &tool(number);
        text += "\n    response:\n      sequence:\n";
        for answer in 0..3 {
            text += &format!(
                "        - content:\n            - type: text\n              text: \"Result {answer} of it\\nwith a second line\"\n"
            );
        }
    }
    text
}

fn tool(number: usize) -> String {
    format!(
        "  - tool:\n      name: tool_{number}\n      description: \"Tool number {number}, which does something useful with a path\"\n      inputSchema:\n        type: object\n        properties:\n          path: {{type: string, description: where}}\n          depth: {{type: integer, minimum: 0}}\n        required: [path]"
    )
}
