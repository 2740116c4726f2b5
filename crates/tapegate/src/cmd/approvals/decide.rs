//! `tapegate approvals approve` and `deny`.

use std::io::Write;

use tapegate_core::json::write_str;
use tapegate_policy::model::Profile;
use tapegate_store::activity::{ActivityError, Event};
use tapegate_store::approvals::{Decided, Entry, Request, Ruling};

use super::folder::Project;
use super::{Args, Format, Verb, failure, find};
use crate::exit::{Exit, Failure};
use crate::settings::Surroundings;
use crate::state::now_us;
use crate::views::approvals as view;
use crate::{person, talk};

pub(super) fn run(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let by = by(args)?;
    args.key.authorize("deciding about a call", &project.state)?;
    let entries = project.entries()?;
    let meant: Vec<Entry> = match args.all {
        true => entries.into_iter().filter(|entry| view::is_pending(entry, now_us())).collect(),
        // Nothing is decided if one of the names is wrong.
        false => args.ids.iter().map(|id| find::one(&entries, id)).collect::<Result<_, _>>()?,
    };
    if meant.is_empty() {
        talk::say("nothing waits for approval");
        return Ok(Exit::Ok);
    }
    if !args.key.is_given() && !confirmed(args.verb, &meant)? {
        talk::say("nothing was decided");
        return Ok(Exit::Findings);
    }
    let approvals = project.approvals()?;
    let mut exit = Exit::Ok;
    for Entry { request, .. } in &meant {
        let ruling = if args.verb == Verb::Approve { Ruling::Approved } else { Ruling::Denied };
        let reason = args.reason.clone();
        let decided = Decided { ruling, by: by.clone(), at_us: now_us(), reason };
        match approvals.decide(&request.id, &decided) {
            Ok(()) => {
                log(project, request, &decided);
                tell(args.format, request, decided, out)?;
            }
            Err(error) => {
                let failed = failure(error);
                talk::error(&failed.words, None);
                exit = failed.exit;
            }
        }
    }
    Ok(exit)
}

/// Shows every request in full, and asks once.
fn confirmed(verb: Verb, meant: &[Entry]) -> Result<bool, Failure> {
    let mut text: String =
        meant.iter().map(|entry| format!("{}\n", view::details(entry, now_us()))).collect();
    let word = if verb == Verb::Approve { "approve" } else { "deny" };
    text.push_str(&match meant.len() {
        1 => format!("{word} this call?"),
        count => format!("{word} these {count} calls?"),
    });
    person::confirm(&text)
}

fn tell(
    format: Format,
    request: &Request,
    decided: Decided,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        Format::Text => {
            let words = view::call(request, 100);
            writeln!(out, "{} {}: {words}", decided.ruling.word(), request.id)
        }
        Format::Json => {
            let entry = Entry { request: request.clone(), decided: Some(decided), used: false };
            out.write_all(&view::json(&entry, now_us()))
        }
    }
}

/// Notes the decision in the activity log. It holds without that, so a failure is only reported.
fn log(project: &Project, request: &Request, decided: &Decided) {
    if let Err(error) = project.log(&event(request, decided)) {
        talk::warn(&format!("the decision holds, but is not in the activity log: {error}"));
        hint(&error);
    }
}

fn hint(error: &ActivityError) {
    error.hint().into_iter().for_each(talk::hint);
}

fn event<'a>(request: &'a Request, decided: &'a Decided) -> Event<'a> {
    let mut workflow = Vec::new();
    write_str(&mut workflow, &request.workflow);
    let workflow = String::from_utf8(workflow).unwrap_or_default();
    let extra = format!("\"workflow\":{workflow}").into();
    // Only production holds calls; development forwards them.
    let profile = Profile::Production.name();
    Event { component: "cli", profile, extra, ..Event::settled(request, decided) }
}

/// Who decides.
fn by(args: &Args) -> anyhow::Result<String> {
    let user = || {
        let around = Surroundings::ours().ok()?;
        around.first(&["USER", "LOGNAME"])?.into_string().ok()
    };
    let name = args.by.clone().or_else(user);
    let name = name.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::new(Exit::Usage, "--by wants a name").into());
    }
    Ok(name)
}
