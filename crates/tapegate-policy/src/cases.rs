//! Test cases for policies: a call, and the expected decision.
//!
//! The file is YAML that is checked against tables, so all errors are reported at once, each with
//! its position. A case is decided by the same function as a live call.

/// The tables of the language.
pub mod language;
mod read;
mod run;

use tapegate_yaml::files::{FileError, Files};
use tapegate_yaml::finding::{Finding, Findings};
use tapegate_yaml::node::{NodeValue, Spot};
use tapegate_yaml::shape::schema::SchemaInfo;
use tapegate_yaml::shape::{self, Shape};
use tapegate_yaml::yaml;

use crate::decide::{GateName, PolicyPrincipal};
use crate::model::Profile;

pub use run::{CaseResult, ExpectationMiss, run};

/// The maximum size of a file of cases.
const FILE_BYTES_MAX: usize = 16 << 20;

/// A file of cases.
#[derive(Debug)]
pub struct TestSuite {
    /// The policy under test, relative to this file's folder, if the file names one.
    pub config: Option<String>,
    /// The cases, in file order.
    pub cases: Vec<TestCase>,
}

/// A call and the expected decision.
#[derive(Debug)]
pub struct TestCase {
    pub name: String,
    /// Its position in the file.
    pub spot: Spot,
    /// The name of the server that is called.
    pub server: String,
    /// The call or message.
    pub input: CaseInput,
    /// The caller.
    pub principal: PolicyPrincipal,
    /// The time of the call, in microseconds since 1970; `None` for now.
    pub wall_us: Option<i64>,
    /// The profile it runs under.
    pub profile: Profile,
    /// The expected decision.
    pub expect: CaseExpectation,
}

#[derive(Debug)]
pub enum CaseInput {
    Call {
        method: String,
        /// The name of the tool or prompt, or the URI.
        name: String,
        /// The JSON of the arguments.
        arguments: Option<Vec<u8>>,
    },
    /// A whole message, byte for byte.
    Message(Vec<u8>),
}

/// The expected decision. A field that is `None` is not compared.
#[derive(Debug)]
pub struct CaseExpectation {
    /// The expected outcome of the call.
    pub case_outcome: CaseOutcome,
    /// The gate that decides.
    pub gate: Option<GateName>,
    /// The rule that matches.
    pub rule: Option<String>,
    /// The workflow that asks for approval.
    pub workflow: Option<String>,
    /// A Cedar policy that decides.
    pub policy: Option<String>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseOutcome {
    /// It is sent on.
    Forward,
    /// It is refused.
    Deny,
    /// It waits for approval.
    Approve,
}

/// The result of loading a file of cases.
#[derive(Debug)]
pub struct LoadedSuite {
    /// The cases, if they can be run.
    pub suite: Option<TestSuite>,
    /// All findings, in text order.
    pub findings: Vec<Finding>,
}

impl CaseOutcome {
    /// Its keyword in a file of cases.
    pub fn as_str(self) -> &'static str {
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

/// The published JSON Schema of a file of cases.
pub fn schema() -> String {
    let about =
        "Tests of a policy, for `tapegate policy test`. Written from the tables of the language.";
    let top = &language::SUITE;
    SchemaInfo { title: "Tapegate policy tests", about, top, elsewhere: false }.write()
}

fn parse(bytes: &[u8], findings: &mut Findings) -> Option<TestSuite> {
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
    if node.value == NodeValue::Null {
        findings.error(node.spot, "there is nothing in this file");
        return None;
    }
    shape::check(&node, &Shape::Table(&language::SUITE), &[], findings);
    read::suite(&node, findings)
}

#[cfg(test)]
mod tests;
