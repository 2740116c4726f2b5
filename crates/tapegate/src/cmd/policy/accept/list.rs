//! Lists every accepted policy, and whether its file still has the same content.

use std::io::Write;

use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_store::accepted::AcceptedPolicy;

use crate::exit::{Exit, Failure};
use crate::talk;
use crate::trust::{self, Trust};
use crate::views::visible;

pub(super) fn run(trust: &Trust, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let list = trust.list().map_err(|why| Failure::new(Exit::Io, why))?;
    if list.is_empty() {
        talk::say("no policy has been accepted yet");
    }
    for accepted in &list {
        let mut moment = Vec::new();
        write_rfc3339(&mut moment, accepted.accepted_us, SubSecond::Millis);
        let path = visible::inline(&accepted.path.to_string_lossy(), usize::MAX);
        let (moment, how) = (String::from_utf8_lossy(&moment), accepted.how.word());
        let hash = &accepted.hash()[..16];
        writeln!(out, "{hash}  {moment}  {how:<9}  {:<12}  {path}", standing(accepted))?;
    }
    Ok(Exit::Ok)
}

fn standing(accepted: &AcceptedPolicy) -> &'static str {
    let (_, texts) = trust::read_file(&accepted.path, None);
    match texts == accepted.texts {
        true => "in force",
        false if accepted.path.exists() => "file differs",
        false => "file gone",
    }
}
