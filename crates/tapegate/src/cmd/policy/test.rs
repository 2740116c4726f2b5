//! `tapegate policy test`: checks that a policy decides as expected.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use tapegate_policy::cases::{self, TestCase, TestSuite};
use tapegate_policy::model::Policy;
use tapegate_wire::clock::Clock;

use super::policy_loader::{self, LoadedPolicy};
use crate::exit::{Exit, Failure};
use crate::local_files::LocalFiles;
use crate::output_file::file_only_parser;
use crate::program_name;
use crate::verbosity;
use crate::views::policy_tests::{self, TestedFile};
use crate::views::report::RunReport;
use crate::views::report::cases as report;
use crate::views::{json_report, junit};
use crate::{report_files, terminal_output};

/// Why a report is not printed by --report.
const PRINTED: &str = "--format json|junit prints it to standard output; name a file";
/// The default test file.
const FILE: &str = "tapegate.test.yaml";

/// Run the tests of a policy: calls and their expected decisions
///
/// A test file is YAML: a list of `cases`, each with a call and the expected decision.
/// docs/policy-commands.md lists every key.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate policy test
  tapegate policy test tests/*.test.yaml --coverage
  tapegate policy test --config strict.yaml tapegate.test.yaml
  tapegate policy test --format junit > policy.xml

A test file:
  config: tapegate.yaml
  server: files
  cases:
    - {name: reading is fine, call: read_file, arguments: {path: /tmp/a}, expect: forward}
    - {call: delete_file, expect: deny, gate: rules, rule: no-deletes}
    - {method: resources/read, uri: 'file:///etc/passwd', expect: approve, workflow: people}

Exit codes: 0 all tests passed, 1 a test failed, 2 a test file or a policy is invalid, 3 a file
could not be read, 64 wrong usage.")]
pub(crate) struct Args {
    /// The test files [default: tapegate.test.yaml here, or beside the policy]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The policy to test, instead of the one in the files [default: as in the files, or the
    /// nearest tapegate.yaml]
    #[arg(long, value_name = "FILE", visible_alias = "thoughtgate-config")]
    config: Option<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value = "text")]
    format: PolicyTestFormat,
    /// Write the result to a file: JUnit XML if it ends in .xml, else JSON; repeatable
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(PRINTED))]
    report: Vec<PathBuf>,
    /// List the rules that no test reaches
    #[arg(long)]
    coverage: bool,
    /// Print the JSON Schema of test files, for completion and checks in editors
    #[arg(long, exclusive = true)]
    schema: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PolicyTestFormat {
    Text,
    Json,
    Junit,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if args.schema {
        out.write_all(cases::schema().as_bytes())?;
        return Ok(Exit::Ok);
    }
    let clock = Clock::start();
    let files = args.files()?;
    report_files::check_report_paths(&args.report, &files[0], "test file")?;
    let suites = files.iter().map(|path| load(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut policies: Vec<LoadedPolicy> = Vec::new();
    let mut ran = Vec::new();
    for (path, suite) in files.iter().zip(suites) {
        let place = args.policy(path, &suite, &mut policies)?;
        // Rules can depend on the time; all cases of a file see the same.
        let now_us = clock.now().wall_us;
        let policy = &policies[place].policy;
        let done = |case: TestCase| (cases::run(&case, policy, now_us), case);
        ran.push(TestedFile {
            path: path.clone(),
            policy: place,
            cases: suite.cases.into_iter().map(done).collect(),
        });
    }
    let unreached = if args.coverage { unreached_rules(&policies, &ran) } else { Vec::new() };
    let mut report = RunReport::new("policy test", &files[0], clock.now());
    report = report::fill(&ran, &unreached, report);
    report_files::write_all(&report, &args.report)?;
    match args.format {
        PolicyTestFormat::Text => {
            let palette = terminal_output::palette_of_output();
            out.write_all(
                policy_tests::text(&ran, &unreached, verbosity::is_quiet(), palette).as_bytes(),
            )?;
        }
        PolicyTestFormat::Json => out.write_all(&json_report::write(&report))?,
        PolicyTestFormat::Junit => out.write_all(&junit::write(&report))?,
    }
    out.flush()?;
    Ok(if report.outcome().is_ok() { Exit::Ok } else { Exit::Findings })
}

impl Args {
    /// The named files, or else the default one.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        if !self.files.is_empty() {
            return Ok(self.files.clone());
        }
        if Path::new(FILE).is_file() {
            return Ok(vec![FILE.into()]);
        }
        let none = || {
            Failure::new(Exit::Invalid, format!("there is no {FILE} here")).hint(format!(
                "name one: `{}`; --help shows the format",
                program_name::command("policy test FILE")
            ))
        };
        let config = policy_loader::path(self.config.as_deref())?.ok_or_else(none)?;
        let beside = config.with_file_name(FILE);
        if beside.is_file() { Ok(vec![beside]) } else { Err(none().into()) }
    }

    /// The policy that a test file is about, as an index into those loaded.
    fn policy(
        &self,
        file: &Path,
        suite: &TestSuite,
        known: &mut Vec<LoadedPolicy>,
    ) -> anyhow::Result<usize> {
        let beside = file.with_file_name("tapegate.yaml");
        let path = match (&self.config, &suite.config) {
            (Some(path), _) => path.clone(),
            (None, Some(path)) => file.parent().unwrap_or(Path::new("")).join(path),
            (None, None) if beside.is_file() => beside,
            (None, None) => policy_loader::nearest_path(None, policy_loader::BY_CONFIG)?,
        };
        // Several test files share a policy; its faults are printed once.
        if let Some(index) = known.iter().position(|found| found.path == path) {
            return Ok(index);
        }
        known.push(policy_loader::read(path)?);
        Ok(known.len() - 1)
    }
}

/// Loads a test file and reports all its faults.
fn load(path: &Path) -> anyhow::Result<TestSuite> {
    let name = path.to_string_lossy();
    let loaded = cases::load(&name, &LocalFiles::regular_only())
        .map_err(|error| Failure::new(Exit::Io, format!("cannot read `{name}`: {error}")))?;
    terminal_output::report_findings(&loaded.findings, &[], &name);
    let message = || Failure::new(Exit::Invalid, format!("`{name}` cannot be used"));
    loaded.suite.ok_or_else(|| message().into())
}

/// The rules that no case has reached, with their files and lines.
fn unreached_rules(policies: &[LoadedPolicy], ran: &[TestedFile]) -> Vec<String> {
    let mut unreached = Vec::new();
    for (index, LoadedPolicy { path, policy }) in policies.iter().enumerate() {
        let reached = reached_rules(ran.iter().filter(|ran| ran.policy == index));
        let missed = policy.rules.iter().filter(|rule| !reached.contains(&*rule.name));
        let describe_rule = |rule: &tapegate_policy::model::PolicyRule| {
            format!("{}:{}: no test reaches rule `{}`", path.display(), rule.line, rule.name)
        };
        unreached.extend(missed.map(describe_rule));
        if !reached.contains(DEFAULT) && reaches_default(policy) {
            unreached.push(format!("{}: no test reaches the default", path.display()));
        }
    }
    unreached
}

/// Stands for the default among the rules reached; no rule has this name.
const DEFAULT: &str = "";

fn reached_rules<'r>(ran: impl Iterator<Item = &'r TestedFile>) -> BTreeSet<&'r str> {
    use tapegate_policy::decide::GateName;
    let cases = ran.flat_map(|ran| &ran.cases);
    let calls = cases.flat_map(|(came, _)| came.judgement.all_calls());
    let decisions = calls.filter_map(|call| call.decision.as_ref());
    // A hidden tool is refused before any rule is looked at.
    let past = decisions.filter(|decision| decision.gate != GateName::Visibility);
    past.map(|decision| decision.rule.as_deref().unwrap_or(DEFAULT)).collect()
}

/// Whether some call may match no rule, as far as that can be determined.
fn reaches_default(policy: &Policy) -> bool {
    !policy.rules.iter().any(|rule| {
        let any =
            |globs: &[tapegate_policy::glob::Glob]| globs.iter().any(|glob| glob.text() == "*");
        any(&rule.matches)
            && rule.methods.is_empty()
            && rule.sources.is_empty()
            && rule.arguments.is_empty()
    })
}
