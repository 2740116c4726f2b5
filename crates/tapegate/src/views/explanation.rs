//! Formats why a call is decided as it is, as text and JSON.

use std::fmt::Write;

use tapegate_policy::decide::{Decision, DecisionOutcome};
use tapegate_policy::judge::{JudgedCall, Judgement};
use tapegate_policy::model::Profile;

use super::json::JsonWriter;
use super::palette::Palette;
use super::visible_text;

/// How many characters of a name, and of a step, are shown.
const NAME_CHARS_MAX: usize = 200;
const STEP_CHARS_MAX: usize = 1000;

/// A decision to explain.
#[derive(Debug)]
pub(crate) struct Explanation<'m> {
    /// The server's id in the policy.
    pub(crate) server: String,
    /// The decision with all its steps.
    pub(crate) judgement: Judgement<'m>,
    /// The policy that sessions use at present.
    pub(crate) in_force: PolicyInForce,
}

/// How the explained policy relates to the one in force.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PolicyInForce {
    /// It is in force, or will be at the next start.
    ThisFile,
    /// A person must accept it first; until then, the accepted policy does this.
    Accepted(DecisionOutcome),
    /// A person must accept it first; until then, no session starts.
    None,
}

/// The explanation as text.
pub(crate) fn text(explained: &Explanation<'_>, profile: Profile, palette: Palette) -> String {
    let Explanation { server, judgement, .. } = explained;
    let mut out = String::new();
    let server = visible_text::inline(server, NAME_CHARS_MAX);
    for call in judgement.all_calls() {
        let title = format!("{} on server {server}", call_name(call));
        // Writing to a string cannot fail.
        writeln!(out, "{}", palette.bold(&title)).ok();
        out.push_str(&write_profiles(explained, call.decision.as_deref(), profile, palette));
        for (number, step) in steps(call).iter().enumerate() {
            writeln!(out, "  {}. {}", number + 1, visible_text::inline(step, STEP_CHARS_MAX)).ok();
        }
    }
    let no_calls = judgement.all_calls().next().is_none();
    if no_calls {
        let title = format!("a message to server {server}");
        writeln!(out, "{}", palette.bold(&title)).ok();
        out.push_str(&write_profiles(explained, None, profile, palette));
    }
    for fault in judgement.faults() {
        writeln!(out, "  framing: {} ({}, {})", fault.message(), fault.label(), fault.code()).ok();
    }
    for anomaly in judgement.anomalies() {
        writeln!(out, "  logged: {} ({})", anomaly.message(), anomaly.label()).ok();
    }
    for list in judgement.all_lists() {
        let word = list.offer.list();
        writeln!(out, "  visibility: of {word} {} stay", list.kept).ok();
        for name in &list.hidden {
            let name = visible_text::inline(name, NAME_CHARS_MAX);
            writeln!(out, "  {}", palette.red(&format!("- {name}"))).ok();
        }
    }
    let lists = judgement.all_lists().next().is_some();
    if no_calls && judgement.faults().next().is_none() && !lists {
        out.push_str("  nothing in it is gated\n");
    }
    out
}

/// What each profile does.
fn write_profiles(
    explained: &Explanation<'_>,
    decision: Option<&Decision>,
    profile: Profile,
    palette: Palette,
) -> String {
    let Explanation { judgement, in_force, .. } = explained;
    let strict =
        decision.map_or_else(|| judgement.strict_outcome(), |decision| decision.strict.clone());
    let painted = match &strict {
        DecisionOutcome::Forward => palette.green("forward"),
        DecisionOutcome::Deny => palette.red("deny"),
        DecisionOutcome::Hold { .. } => palette.bold("waits for a person"),
    };
    let mut by = Vec::new();
    if let DecisionOutcome::Hold { workflow } = &strict {
        by.push(format!("workflow `{workflow}`"));
    }
    match decision {
        Some(decision) => {
            by.push(decision.gate.title().to_owned());
            by.extend(decision.rule.iter().map(|rule| format!("rule `{rule}`")));
            by.extend(decision.policies.iter().map(|policy| format!("Cedar policy `{policy}`")));
        }
        None if judgement.faults().next().is_some() => by.push("framing".to_owned()),
        None => {}
    }
    let by = by.join(", ");
    let by = if by.is_empty() {
        by
    } else {
        format!(" ({})", visible_text::inline(&by, NAME_CHARS_MAX))
    };
    let would = match (&strict, judgement.faults().next()) {
        (_, Some(fault)) => format!(", logged as {}", fault.production_outcome().as_str()),
        (DecisionOutcome::Forward, None) => String::new(),
        (DecisionOutcome::Deny, None) => ", logged as WOULD_BLOCK".to_owned(),
        (DecisionOutcome::Hold { .. }, None) => ", logged as WOULD_REQUIRE_APPROVAL".to_owned(),
    };
    let is_in_force = *in_force == PolicyInForce::ThisFile;
    let mark = |of: Profile| if of == profile && is_in_force { " (in force)" } else { "" };
    let (one, two) = (mark(Profile::Production), mark(Profile::Development));
    let pending = match in_force {
        PolicyInForce::ThisFile => String::new(),
        PolicyInForce::Accepted(outcome) => {
            let now = match outcome {
                DecisionOutcome::Forward => palette.green("forward"),
                DecisionOutcome::Deny => palette.red("deny"),
                DecisionOutcome::Hold { .. } => palette.bold("waits for a person"),
            };
            format!(", once this file is accepted; the policy in force: {now}")
        }
        PolicyInForce::None => {
            ", once this file is accepted; no policy is in force, and no session starts".to_owned()
        }
    };
    format!("  production{one}: {painted}{by}{pending}\n  development{two}: forward{would}\n")
}

/// The explanation as one JSON object.
pub(crate) fn json(explained: &Explanation<'_>, profile: Profile) -> Vec<u8> {
    let Explanation { server, judgement, in_force } = explained;
    let mut out = JsonWriter::object(|json| {
        json.text("server", server);
        json.text("profile", profile.as_str());
        let strict = judgement.strict_outcome();
        json.text("production", outcome_word(&strict));
        json.text("development", "forward");
        let done = if profile == Profile::Production { outcome_word(&strict) } else { "forward" };
        json.text("outcome", done);
        match in_force {
            PolicyInForce::ThisFile => {}
            PolicyInForce::Accepted(outcome) => json.text("in_force", outcome_word(outcome)),
            PolicyInForce::None => json.text("in_force", "none"),
        }
        judgement.gate().into_iter().for_each(|gate| json.text("gate", gate.as_str()));
        json.list("calls", judgement.all_calls(), |json, call| {
            json.text("method", &call.method);
            json.text("name", &call.name);
            let Some(decision) = &call.decision else { return };
            json.text("production", outcome_word(&decision.strict));
            json.text("gate", decision.gate.as_str());
            decision.rule.iter().for_each(|rule| json.text("rule", rule));
            json.texts("policies", &decision.policies);
            if let DecisionOutcome::Hold { workflow } = &decision.strict {
                json.text("workflow", workflow);
            }
            json.text("reason", &decision.reason);
            json.texts("steps", &decision.steps);
        });
        json.list("faults", judgement.faults(), |json, fault| {
            json.text("fault", fault.label());
            json.raw("code", fault.code().to_string().as_bytes());
            json.text("words", fault.message());
        });
        json.list("anomalies", judgement.anomalies(), |json, anomaly| {
            json.text("anomaly", anomaly.label());
            json.text("words", anomaly.message());
        });
        json.list("lists", judgement.all_lists(), |json, list| {
            json.text("list", list.offer.list());
            json.number("kept", list.kept as u64);
            json.texts("hidden", &list.hidden);
        });
    });
    out.push(b'\n');
    out
}

/// The outcome of a call, in a word.
pub(crate) fn outcome_word(outcome: &DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Forward => "forward",
        DecisionOutcome::Deny => "deny",
        DecisionOutcome::Hold { .. } => "approve",
    }
}

fn steps<'c>(call: &'c JudgedCall<'_>) -> &'c [String] {
    call.decision.as_ref().map(|decision| decision.steps.as_slice()).unwrap_or_default()
}

fn call_name(call: &JudgedCall<'_>) -> String {
    // Spaces around a name are part of it, and affect the decision.
    let name = match call.name.trim() == call.name {
        true => format!("{} {}", call.method, call.name),
        false => format!("{} `{}`", call.method, call.name),
    };
    visible_text::inline(name.trim_end(), NAME_CHARS_MAX)
}
