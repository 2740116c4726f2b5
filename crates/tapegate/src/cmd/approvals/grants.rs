//! `tapegate approvals grants`: lists what was granted, and revokes it.

use std::io::Write;

use tapegate_store::approvals::{ApprovalGrant, GrantState};

use super::folder::Project;
use super::{ApprovalsFormat, Args, decide, failure, grant};
use crate::exit::{Exit, Failure};
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::views::approvals::grants_view;
use crate::views::visible_text;

/// What is done with grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrantsAction<'a> {
    List,
    Revoke(&'a [String]),
}

pub(super) fn run(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    // Files that are not authentic are reported as they are for requests.
    project.entries()?;
    match action(args)? {
        GrantsAction::List => list(args, project, out),
        GrantsAction::Revoke(ids) => revoke(args, project, ids, out),
    }
}

fn action(args: &Args) -> Result<GrantsAction<'_>, Failure> {
    match args.ids.split_first() {
        None => Ok(GrantsAction::List),
        Some((word, [])) if word == "list" => Ok(GrantsAction::List),
        Some((word, ids)) if word == "revoke" && (!ids.is_empty() || args.all) => {
            Ok(GrantsAction::Revoke(ids))
        }
        _ => Err(Failure::new(
            Exit::Usage,
            "after `grants` comes nothing, `list`, or `revoke` with the ids of grants or --all",
        )),
    }
}

fn list(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let now_us = now_us();
    let mut grants = project.grants()?;
    grants.retain(|grant| args.all || grant.state(now_us) == GrantState::Active);
    match args.format {
        ApprovalsFormat::Text => out.write_all(grants_view::table(&grants, now_us).as_bytes())?,
        ApprovalsFormat::Json | ApprovalsFormat::Jsonl => {
            let mut list = args.format.list(out);
            for grant in &grants {
                list.write_all(&grants_view::json(grant, now_us))?;
            }
            list.finish()?;
        }
    }
    Ok(Exit::Ok)
}

/// Revokes grants. It permits nothing, so it needs no person.
fn revoke(
    args: &Args,
    project: &Project,
    ids: &[String],
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let by = decide::decider_name(args)?;
    let (now_us, grants) = (now_us(), project.grants()?);
    let meant: Vec<&ApprovalGrant> = match args.all {
        true => grants.iter().filter(|grant| grant.state(now_us) == GrantState::Active).collect(),
        // If one of the names is wrong, nothing is revoked.
        false => ids.iter().map(|id| find(&grants, id)).collect::<Result<_, _>>()?,
    };
    let approvals = project.approvals()?;
    let mut exit = Exit::Ok;
    for grant in meant {
        if !approvals.revoke_grant(&grant.id, &by, now_us).map_err(failure)? {
            terminal_output::error(&format!("`{}` has ended before", grant.id), None);
            exit = Exit::Findings;
            continue;
        }
        if let Err(error) = project.log(&grant::event(grant, &by, "revoked")) {
            terminal_output::warn(&format!("this is not in the activity log: {error}"));
        }
        writeln!(out, "revoked {}: {}", grant.id, grants_view::covers(grant))?;
    }
    Ok(exit)
}

/// The grant with this id, or with this beginning of one.
fn find<'a>(grants: &'a [ApprovalGrant], word: &str) -> Result<&'a ApprovalGrant, Failure> {
    let letters = word.strip_prefix("gr_").unwrap_or(word);
    let is_meant = |grant: &&ApprovalGrant| {
        grant.id.strip_prefix("gr_").is_some_and(|id| id.starts_with(letters))
    };
    let meant: Vec<&ApprovalGrant> = grants.iter().filter(is_meant).collect();
    match &meant[..] {
        [grant] if letters.len() >= 3 => Ok(grant),
        _ => {
            let shown = visible_text::inline(word, 80);
            let message = format!("`{shown}` does not name one grant");
            Err(Failure::new(Exit::Invalid, message).hint("`approvals grants --all` lists them"))
        }
    }
}
