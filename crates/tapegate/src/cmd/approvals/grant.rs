//! Approvals for more than one call: the options of `approve`.

use std::time::Duration;

use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_core::grant_pattern::{ArgumentRange, GrantPattern};
use tapegate_hub::grant_plan::{GrantPlan, GrantRefusal, PERIOD_MAX, grant_event};
use tapegate_store::approvals::ApprovalGrant;

use super::failure;
use crate::exit::{Exit, Failure};
use crate::state_folder::now_us;
use crate::units;

/// Lets more calls pass than the one that waits.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct GrantArgs {
    /// With `approve`, let the same call pass again for this long, such as 30m or 2h, at most 24h
    #[arg(long = "for", value_name = "TIME", value_parser = period)]
    period: Option<Duration>,
    /// With `approve`, let the same call pass again until the session of its caller ends, for 24h
    /// at most
    #[arg(long)]
    session: bool,
    /// With --for or --session, also let calls pass in which only the argument NAME differs, and is
    /// a path in FOLDER
    #[arg(long, value_name = "NAME=FOLDER")]
    under: Vec<String>,
    /// The same for an argument that GLOB matches
    #[arg(long, value_name = "NAME=GLOB")]
    matching: Vec<String>,
}

fn period(text: &str) -> Result<Duration, String> {
    if text.chars().all(|c| c.is_ascii_digit()) {
        return Err(format!("`{text}` has no unit; write {text}m or {text}h"));
    }
    let hours = text.strip_suffix('h').and_then(|hours| hours.trim().parse::<u64>().ok());
    let hours = hours.and_then(|hours| hours.checked_mul(3600)).map(Duration::from_secs);
    let other = |_| "expected a time such as 30m or 2h, with the unit s, m or h".to_owned();
    let period = hours.map_or_else(|| units::duration(text).map_err(other), Ok)?;
    match !period.is_zero() && period <= PERIOD_MAX {
        true => Ok(period),
        false => Err("a grant lasts at most 24h".to_owned()),
    }
}

impl GrantArgs {
    /// Whether anything is granted.
    pub(super) fn is_given(&self) -> bool {
        self.period.is_some() || self.session || self.has_patterns()
    }

    fn has_patterns(&self) -> bool {
        !self.under.is_empty() || !self.matching.is_empty()
    }

    /// What is granted, if anything.
    pub(super) fn plan(&self) -> Result<Option<GrantPlan>, Failure> {
        let usage = |message: String| Failure::new(Exit::Usage, message);
        if self.period.is_none() && !self.session {
            return match self.has_patterns() {
                true => Err(usage("--under and --matching need --for or --session".to_owned())),
                false => Ok(None),
            };
        }
        let under = self.under.iter().map(|text| (text, true));
        let matching = self.matching.iter().map(|text| (text, false));
        let mut patterns: Vec<GrantPattern> = Vec::new();
        for (text, is_folder) in under.chain(matching) {
            let (argument, rest) = text
                .split_once('=')
                .ok_or_else(|| usage(format!("`{text}` has no `=`; write NAME=VALUE")))?;
            let range = match is_folder {
                true => ArgumentRange::Under(rest.to_owned()),
                false => ArgumentRange::Matching(rest.to_owned()),
            };
            patterns.push(GrantPattern { argument: argument.to_owned(), range });
        }
        GrantPlan::new(self.period, self.session, patterns).map(Some).map_err(refusal)
    }
}

/// The failure for a grant that cannot be given.
pub(super) fn refusal(error: GrantRefusal) -> Failure {
    match error {
        GrantRefusal::Invalid(message) => Failure::new(Exit::Usage, message),
        GrantRefusal::Unfit(message) => Failure::new(Exit::Findings, message),
        GrantRefusal::Store(error) => failure(error),
    }
}

/// The activity log event for a grant that was given or revoked.
pub(super) fn event<'a>(grant: &'a ApprovalGrant, by: &str, word: &str) -> ActivityEvent<'a> {
    let component = Some(EventComponent::Cli);
    ActivityEvent { component, ..grant_event(grant, by, word, now_us()) }
}
