//! The tests that people write of their policies: a call, and what is expected to become of it.
//!
//! They are YAML that is checked by tables, so that everything that is wrong with it is told at once
//! and with its place. A case is decided by the same function as a live call.

/// The tables of the language.
pub mod language;
mod read;
mod run;

use tapegate_yaml::files::{FileError, Files};
use tapegate_yaml::finding::{Finding, Findings};
use tapegate_yaml::node::{Spot, Value};
use tapegate_yaml::shape::schema::Published;
use tapegate_yaml::shape::{self, Shape};
use tapegate_yaml::yaml;

use crate::decide::{GateName, Principal};
use crate::model::Profile;

pub use run::{Came, Miss, run};

/// The most that a file of cases may have.
const FILE_BYTES_MAX: usize = 16 << 20;

/// A file of cases.
#[derive(Debug)]
pub struct Suite {
    /// The policy that they are about, from the folder of the file, if it names one.
    pub config: Option<String>,
    /// The cases, in their order.
    pub cases: Vec<Case>,
}

/// A call, and what is expected.
#[derive(Debug)]
pub struct Case {
    /// What it goes by.
    pub name: String,
    /// Where it stands.
    pub spot: Spot,
    /// The server that is called, by its name.
    pub server: String,
    /// What is said to it.
    pub what: What,
    /// Who calls.
    pub principal: Principal,
    /// When, in microseconds since 1970; now, if it is not said.
    pub wall_us: Option<i64>,
    /// Under which profile.
    pub profile: Profile,
    /// What is expected.
    pub expect: Expect,
}

/// What is said to a server.
#[derive(Debug)]
pub enum What {
    /// A call.
    Call {
        /// Its method.
        method: String,
        /// The name of the tool or prompt, or the URI.
        name: String,
        /// The JSON of the arguments.
        arguments: Option<Vec<u8>>,
    },
    /// A whole message, to the letter.
    Message(Vec<u8>),
}

/// What is expected of a decision. What is `None` may be anything.
#[derive(Debug)]
pub struct Expect {
    /// What becomes of the call.
    pub fate: Fate,
    /// The gate that decides.
    pub gate: Option<GateName>,
    /// The rule that matches.
    pub rule: Option<String>,
    /// The workflow by which people are asked.
    pub workflow: Option<String>,
    /// A Cedar policy that decides.
    pub policy: Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is sent on.
    Forward,
    /// It goes nowhere.
    Deny,
    /// People are asked.
    Approve,
}

/// What came of loading a file of cases.
#[derive(Debug)]
pub struct LoadedSuite {
    /// The cases, if nothing keeps them from running.
    pub suite: Option<Suite>,
    /// What was found, in the order of the text.
    pub findings: Vec<Finding>,
}

impl Fate {
    /// Its word in a file of cases.
    pub fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Deny => "deny",
            Self::Approve => "approve",
        }
    }
}

/// Loads the cases in the file `path`.
pub fn load(path: &str, files: &dyn Files) -> Result<LoadedSuite, FileError> {
    let opened = files.open(path, FILE_BYTES_MAX)?;
    let mut findings = Findings::default();
    let suite = parse(&opened.bytes, &mut findings);
    let suite = suite.filter(|_| !findings.has_errors());
    Ok(LoadedSuite { suite, findings: findings.into_list() })
}

/// The JSON Schema of a file of cases, as it is published.
pub fn schema() -> String {
    let about = "Tests of a policy, which `tapegate policy test` runs. Written from the tables of the language.";
    let top = &language::SUITE;
    Published { title: "Tapegate policy tests", about, top, elsewhere: false }.write()
}

fn parse(bytes: &[u8], findings: &mut Findings) -> Option<Suite> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = &bytes[..error.valid_up_to()];
            let line = 1 + memchr::memchr_iter(b'\n', good).count() as u32;
            findings.error(Spot { file: 0, line, column: 1 }, "this line is not UTF-8");
            return None;
        }
    };
    let node = yaml::parse(text, 0, findings)?;
    if node.value == Value::Null {
        findings.error(node.spot, "there is nothing in this file");
        return None;
    }
    shape::check(&node, &Shape::Table(&language::SUITE), &[], findings);
    read::suite(&node, findings)
}

#[cfg(test)]
mod tests;
