//! What to serve and how, resolved from the command line.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tapegate_scenario::behavior;
use tapegate_scenario::finding::{Finding, Severity};
use tapegate_scenario::load::{self, LoadOptions, ScenarioFileKind};
use tapegate_scenario::model::{Delivery, LogOutput, Scenario};

use super::args::Args;
use super::{dangerous_features, library};
use crate::exit::{Exit, Failure};
use crate::file_type;
use crate::local_files::{self, LocalFiles};
use crate::program_name;
use crate::report_files;
use crate::tape_loader::is_same_file;
use crate::terminal_output;

/// What to serve, and how.
pub(super) struct ServePlan {
    pub(super) args: Args,
    pub(super) origin: ScenarioOrigin,
    pub(super) scenario: Rc<Scenario>,
    /// Every file that the scenario consists of.
    pub(super) files: Vec<PathBuf>,
}

/// Where a scenario comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScenarioOrigin {
    File(PathBuf),
    /// A file with one tool.
    Tool(PathBuf),
    /// The library that comes with tapegate.
    Library(String),
}

/// The result of reading a scenario.
pub(super) struct ServedScenario {
    /// The scenario, if it can be run.
    pub(super) scenario: Option<Scenario>,
    /// Problems and warnings to report.
    pub(super) findings: Vec<Finding>,
    /// The names of its files, for findings.
    pub(super) sources: Vec<String>,
    /// Every file that was requested.
    pub(super) files: Vec<PathBuf>,
}

impl ServePlan {
    /// Loads the scenario, and rejects arguments that make no sense before anything is started.
    pub(super) fn new(args: Args) -> anyhow::Result<Self> {
        // First, since a misspelt limit is the user's and not the scenario's.
        local_files::limits()?;
        let origin = ScenarioOrigin::new(&args)?;
        report_files::check_report_paths(&args.report, &origin.path(), "scenario")?;
        check_event_files(&args)?;
        if let ScenarioOrigin::File(path) | ScenarioOrigin::Tool(path) = &origin
            && file_type::seems_a_tape(path)
        {
            let name = path.display();
            return Err(Failure::new(Exit::Invalid, format!("`{name}` is a tape, not a scenario"))
                .hint(format!(
                    "`{}` plays it; `{}` converts it to a scenario",
                    program_name::command(format!("replay -r {name}")),
                    program_name::command(format!("convert -r {name} -o scenario.yaml"))
                ))
                .into());
        }
        let found = origin.load(&args);
        found.report_findings();
        if let Some(path) = &args.events_file
            && found.files.iter().any(|file| is_same_file(file, path))
        {
            let message = "--events-file names a file of the scenario, which is never changed";
            return Err(Failure::new(Exit::Usage, message).hint("name another file").into());
        }
        // The findings above say why.
        let Some(scenario) = found.scenario else {
            let message = format!("the scenario `{}` cannot be run", origin.path().display());
            return Err(Failure::new(Exit::Invalid, message).into());
        };
        if scenario.logging.output == LogOutput::Stdout && args.http.is_none() {
            let message = "`logging.output: stdout` would mix with the protocol on standard output";
            let hint = "use stderr or a file, or serve clients with --http";
            return Err(Failure::new(Exit::Invalid, message).hint(hint).into());
        }
        if args.expect && scenario.expect.is_empty() {
            let message = "the scenario has no `expect`, so --expect has nothing to check";
            return Err(Failure::new(Exit::Invalid, message).into());
        }
        let scenario = Rc::new(scenario);
        Ok(Self { args, origin, scenario, files: found.files })
    }

    /// How all answers are delivered, if the command line says so.
    pub(super) fn delivery(&self) -> Option<Delivery> {
        Some(behavior::named_delivery(self.args.behavior?.as_str()))
    }
}

impl ScenarioOrigin {
    fn new(args: &Args) -> Result<Self, Failure> {
        if let Some(name) = &args.scenario {
            return match library::text(name) {
                Some(_) => Ok(Self::Library(name.clone())),
                None => {
                    let message = format!("there is no scenario `{name}` in the library");
                    let near = tapegate_scenario::shape::nearest_name(name, library::names());
                    let hint = match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("`{}` lists them", program_name::command("serve --list")),
                    };
                    Err(Failure::new(Exit::Usage, message).hint(hint))
                }
            };
        }
        match (&args.tool, args.file.as_ref().or(args.config.as_ref())) {
            (Some(path), _) => Ok(Self::Tool(path.clone())),
            (None, Some(path)) => Ok(Self::File(path.clone())),
            (None, None) => Err(Failure::new(Exit::Usage, "no scenario is named")),
        }
    }

    /// The name of the scenario as a path.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) | Self::Tool(path) => path.clone(),
            Self::Library(name) => library::file(name).into(),
        }
    }

    /// Reads the scenario and applies the command line to it.
    pub(super) fn load(&self, args: &Args) -> ServedScenario {
        let mut found = self.read(Some(&args.library));
        // At each load, or a reload would bring the scenario's own scope back.
        if let (Some(scenario), Some(scope)) = (&mut found.scenario, args.state_scope) {
            scenario.server.scope = scope.into();
        }
        // At each load, because a reload may bring in a handler that runs programs.
        let dangers = found.scenario.as_ref().filter(|_| !args.allow_external_handlers);
        let dangers: Vec<Finding> =
            dangers.into_iter().flat_map(dangerous_features::find).map(error).collect();
        if !dangers.is_empty() {
            found.scenario = None;
            found.findings.extend(dangers);
        }
        found
    }

    pub(super) fn read(&self, library: Option<&Path>) -> ServedScenario {
        let disk = match self {
            Self::Library(name) => {
                LocalFiles::with_file(library::file(name), library::text(name).unwrap_or_default())
            }
            Self::File(_) | Self::Tool(_) => LocalFiles::default(),
        };
        let form = if matches!(self, Self::Tool(_)) {
            ScenarioFileKind::Tool
        } else {
            ScenarioFileKind::Scenario
        };
        let loading = LoadOptions {
            files: &disk,
            library: library.map(|folder| folder.to_string_lossy().into_owned()),
            // The limits were checked when the plan was made.
            limits: local_files::limits().unwrap_or_default(),
            form,
        };
        let loaded = load::load(&self.path().to_string_lossy(), &loading);
        let load::ScenarioLoadResult { scenario, findings, sources, .. } = loaded;
        ServedScenario { scenario, findings, sources, files: disk.requested_files() }
    }
}

impl ServedScenario {
    /// Prints the findings.
    pub(super) fn report_findings(&self) {
        terminal_output::report_findings(&self.findings, &self.sources, "scenario");
    }
}

/// Rejects an events file that is also a report file.
fn check_event_files(args: &Args) -> Result<(), Failure> {
    let Some(path) = &args.events_file else { return Ok(()) };
    if args.report.iter().any(|report| report == path || is_same_file(report, path)) {
        let message = "--events-file and --report name the same file";
        return Err(Failure::new(Exit::Usage, message).hint("name another file"));
    }
    Ok(())
}

fn error(danger: dangerous_features::DangerousFeature) -> Finding {
    let message = format!("{}; allow it with --allow-external-handlers", danger.message);
    Finding { severity: Severity::Error, spot: danger.spot, path: String::new(), message }
}
