//! What to serve and how, resolved from the command line.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tapegate_scenario::behave;
use tapegate_scenario::finding::{Finding, Findings, Severity};
use tapegate_scenario::form::Interpolate;
use tapegate_scenario::load::{self, Form, Limits, Loading};
use tapegate_scenario::model::{Delivery, LogOutput, Scenario};
use tapegate_scenario::node::{Key, Node, Spot, Value};

use super::args::Args;
use super::{danger, library};
use crate::called;
use crate::disk::{self, Disk};
use crate::exit::{Exit, Failure};
use crate::loading::is_same_file;
use crate::reporting;
use crate::sniff;
use crate::talk;
use crate::verbosity;
use crate::views::visible;

/// What to serve, and how.
pub(super) struct Plan {
    pub(super) args: Args,
    pub(super) origin: Origin,
    pub(super) scenario: Rc<Scenario>,
    /// Every file that the scenario consists of.
    pub(super) files: Vec<PathBuf>,
}

/// Where a scenario comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file.
    File(PathBuf),
    /// A file with one tool.
    Tool(PathBuf),
    /// The library that comes with tapegate.
    Library(String),
}

/// The result of reading a scenario.
pub(super) struct Found {
    /// The scenario, if it can be run.
    pub(super) scenario: Option<Scenario>,
    /// Problems and warnings to report.
    pub(super) findings: Vec<Finding>,
    /// The names of its files, for findings.
    pub(super) sources: Vec<String>,
    /// Every file that was requested.
    pub(super) files: Vec<PathBuf>,
}

impl Plan {
    /// Loads the scenario, and rejects arguments that make no sense before anything is started.
    pub(super) fn new(args: Args) -> anyhow::Result<Self> {
        disk::limits()?;
        let origin = Origin::new(&args)?;
        reporting::look_for_places(&args.report, &origin.path(), "scenario")?;
        look_for_events(&args)?;
        if let Origin::File(path) | Origin::Tool(path) = &origin
            && sniff::seems_a_tape(path)
        {
            let name = path.display();
            return Err(Failure::new(Exit::Invalid, format!("`{name}` is a tape, not a scenario"))
                .hint(format!(
                    "`{}` plays it; `{}` converts it to a scenario",
                    called::command(format!("replay -r {name}")),
                    called::command(format!("convert -r {name} -o scenario.yaml"))
                ))
                .into());
        }
        let found = origin.load(&args);
        found.tell(verbosity::is_quiet());
        if let Some(path) = &args.events_file
            && found.files.iter().any(|file| is_same_file(file, path))
        {
            let words = "--events-file names a file of the scenario, which is never changed";
            return Err(Failure::new(Exit::Usage, words).hint("name another file").into());
        }
        let Some(scenario) = found.scenario else {
            let words = format!("the scenario `{}` cannot be run", origin.path().display());
            return Err(Failure::new(Exit::Invalid, words).into());
        };
        if scenario.logging.output == LogOutput::Stdout && args.http.is_none() {
            let words = "`logging.output: stdout` would mix with the protocol on standard output";
            let hint = "use stderr or a file, or serve clients with --http";
            return Err(Failure::new(Exit::Invalid, words).hint(hint).into());
        }
        if args.expect && scenario.expect.is_empty() {
            let words = "the scenario has no `expect`, so --expect has nothing to check";
            return Err(Failure::new(Exit::Invalid, words).into());
        }
        let scenario = Rc::new(scenario);
        Ok(Self { args, origin, scenario, files: found.files })
    }

    /// How all answers are delivered, if the command line says so.
    pub(super) fn delivery(&self) -> Option<Delivery> {
        let word = self.args.behavior?.word();
        let key = Key { spot: Spot::default(), name: "delivery".to_owned() };
        let node = Node::new(Value::Map(vec![(key, Node::text(word))]));
        let limits = Limits::default().generator;
        let how = behave::Reading { limits, interpolate: Interpolate::None };
        Some(behave::read(&node, &how, &mut Findings::default()).delivery)
    }
}

impl Origin {
    fn new(args: &Args) -> Result<Self, Failure> {
        if let Some(name) = &args.scenario {
            return match library::text(name) {
                Some(_) => Ok(Self::Library(name.clone())),
                None => {
                    let words = format!("there is no scenario `{name}` in the library");
                    let near = tapegate_scenario::shape::near(name, library::names());
                    let hint = match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("`{}` lists them", called::command("serve --list")),
                    };
                    Err(Failure::new(Exit::Usage, words).hint(hint))
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
    pub(super) fn load(&self, args: &Args) -> Found {
        let mut found = self.read(Some(&args.library));
        if let (Some(scenario), Some(scope)) = (&mut found.scenario, args.state_scope) {
            scenario.server.scope = scope.into();
        }
        let dangers = found.scenario.as_ref().filter(|_| !args.allow_external_handlers);
        let dangers: Vec<Finding> = dangers.into_iter().flat_map(danger::find).map(error).collect();
        if !dangers.is_empty() {
            found.scenario = None;
            found.findings.extend(dangers);
        }
        found
    }

    /// Reads the scenario.
    pub(super) fn read(&self, library: Option<&Path>) -> Found {
        let disk = match self {
            Self::Library(name) => {
                Disk::with(library::file(name), library::text(name).unwrap_or_default())
            }
            Self::File(_) | Self::Tool(_) => Disk::default(),
        };
        let form = if matches!(self, Self::Tool(_)) { Form::Tool } else { Form::Scenario };
        let loading = Loading {
            files: &disk,
            library: library.map(|folder| folder.to_string_lossy().into_owned()),
            // The limits were checked when the plan was made.
            limits: disk::limits().unwrap_or_default(),
            form,
        };
        let loaded = load::load(&self.path().to_string_lossy(), &loading);
        let load::Loaded { scenario, findings, sources, .. } = loaded;
        Found { scenario, findings, sources, files: disk.asked() }
    }
}

impl Found {
    /// Prints the findings; errors even with --quiet.
    pub(super) fn tell(&self, quiet: bool) {
        for finding in &self.findings {
            let words = self.words(finding);
            match finding.severity {
                Severity::Error => talk::error(&words, None),
                Severity::Warning if !quiet => talk::warn(&words),
                Severity::Warning => {}
            }
        }
    }

    /// A finding with its position: `file:line:column: path: words`.
    fn words(&self, finding: &Finding) -> String {
        let Spot { file, line, column } = finding.spot;
        let file = self.sources.get(usize::from(file)).map_or("scenario", String::as_str);
        let place = if line == 0 { String::new() } else { format!(":{line}:{column}") };
        let path = match finding.path.as_str() {
            "" => String::new(),
            path => format!("{path}: "),
        };
        visible::inline(&format!("{file}{place}: {path}{}", finding.words), usize::MAX)
    }
}

/// Rejects an events file that is also a report file.
fn look_for_events(args: &Args) -> Result<(), Failure> {
    let Some(path) = &args.events_file else { return Ok(()) };
    if args.report.iter().any(|report| report == path || is_same_file(report, path)) {
        let words = "--events-file and --report name the same file";
        return Err(Failure::new(Exit::Usage, words).hint("name another file"));
    }
    Ok(())
}

fn error(danger: danger::Danger) -> Finding {
    let words = format!("{}; allow it with --allow-external-handlers", danger.words);
    Finding { severity: Severity::Error, spot: danger.spot, path: String::new(), words }
}
