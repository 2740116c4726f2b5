//! Lists every accepted policy, and whether its file still has the same content.

use std::io::Write;

use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_store::accepted_policies::AcceptedPolicy;

use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::trust::{self, PolicyTrust};
use crate::views::visible_text;

pub(super) fn run(trust: &PolicyTrust, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let list = trust.list().map_err(|reason| Failure::new(Exit::Io, reason))?;
    if list.is_empty() {
        terminal_output::info("no policy has been accepted yet");
    }
    for accepted in &list {
        let mut moment = Vec::new();
        write_rfc3339(&mut moment, accepted.accepted_us, SubSecond::Millis);
        let path = visible_text::inline(&accepted.path.to_string_lossy(), usize::MAX);
        let (moment, how) = (String::from_utf8_lossy(&moment), accepted.how.as_str());
        let hash = &accepted.hash()[..16];
        writeln!(out, "{hash}  {moment}  {how:<9}  {:<12}  {path}", acceptance_state(accepted))?;
    }
    Ok(Exit::Ok)
}

fn acceptance_state(accepted: &AcceptedPolicy) -> &'static str {
    let (_, texts) = trust::read_file(&accepted.path, None);
    match texts == accepted.texts {
        true => "in force",
        false if accepted.path.exists() => "file differs",
        false => "file gone",
    }
}
