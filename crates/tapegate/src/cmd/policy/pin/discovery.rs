//! Learns what servers offer, from tapes or from the servers themselves.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_core::tape::TapeLine;
use tapegate_policy::model::Policy;
use tapegate_policy::pins::ServerSurvey;
use tapegate_store::tape_source::TapeSource;
use tapegate_wire::link::{LinkError, LinkOptions};
use tapegate_wire::lister_loop::{self, ListingEnd};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::ShutdownTimeouts;
use tokio::task::LocalSet;

use super::super::backtest::backtest_tape::{self, BacktestTape};
use super::Args;
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::settings::server_id;
use crate::terminal_output;
use crate::upstream::UpstreamTarget;
use crate::views::visible_text;

/// How long a server has to exit by itself.
const GRACE: Duration = Duration::from_secs(1);
/// The largest answer accepted from a server.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How many characters of an error from the server are shown.
const WHY_CHARS_MAX: usize = 600;

/// What servers offer, by server id; or the signal that interrupted the query.
type SurveyResult = Result<BTreeMap<String, ServerSurvey>, i32>;

/// Learns what servers offer from the tapes or from the live server.
pub(super) fn discover(args: &Args, policy: Option<&Policy>) -> anyhow::Result<SurveyResult> {
    match (args.upstream.optional()?, args.tapes.is_empty()) {
        (Some(upstream), true) => discover_from_server(args, upstream),
        (None, false) => Ok(Ok(discover_from_tapes(args, policy)?)),
        (Some(_), false) => {
            Err(Failure::new(Exit::Usage, "give either a server or tapes, not both").into())
        }
        (None, true) => {
            let message = "no tapes and no server are named";
            let hint =
                "name tapes, or a server: `-- CMD ARGS`, `--upstream CMD`, `--upstream-http URL`";
            Err(Failure::new(Exit::Usage, message).hint(hint).into())
        }
    }
}

/// Learns from tapes.
fn discover_from_tapes(
    args: &Args,
    policy: Option<&Policy>,
) -> anyhow::Result<BTreeMap<String, ServerSurvey>> {
    let mut learnt: BTreeMap<String, ServerSurvey> = BTreeMap::new();
    for tape in backtest_tape::find(&args.tapes)? {
        let server = match (&args.server_id, policy) {
            (Some(named), _) => named.clone(),
            (None, policy) => {
                tape.server_name(policy).ok_or_else(|| unnamed_tape_failure(&tape))?
            }
        };
        let survey = learnt.entry(server).or_default();
        let before = survey.len();
        read(&tape, survey)?;
        if survey.is_empty() && before == 0 {
            terminal_output::warn(&format!("`{}` contains no lists", tape.path.display()));
        }
    }
    learnt.retain(|_, survey| !survey.is_empty());
    if learnt.is_empty() {
        let message = "the tapes contain no lists of what their servers offer";
        return Err(Failure::new(Exit::Invalid, message).into());
    }
    for (server, survey) in &learnt {
        report_oddities(server, survey);
    }
    Ok(learnt)
}

fn read(tape: &BacktestTape, survey: &mut ServerSurvey) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Io, format!("cannot read `{}`: {error}", tape.path.display()))
    };
    let path = &tape.path;
    let mut source =
        TapeSource::open(path, terminal_output::progress(path)).map_err(|error| cannot(&error))?;
    while let Some(next) = source.reader.next() {
        let Ok(numbered) = next else { continue };
        let TapeLine::Message(message) = &numbered.entry else { continue };
        // An answer of Tapegate's own is not what the server offers.
        if message.from != Side::Server || message.ours {
            continue;
        }
        let frame = Frame::read(&message.msg);
        let envelope = frame
            .envelope()
            .filter(|envelope| envelope.kind() == MessageKind::Response && envelope.lists);
        survey.page(envelope.and_then(|envelope| envelope.result).unwrap_or(b"{}"));
    }
    Ok(())
}

/// Learns from a live server.
fn discover_from_server(args: &Args, upstream: UpstreamTarget) -> anyhow::Result<SurveyResult> {
    let server = args.server_id.clone().unwrap_or_else(|| server_id(&upstream));
    let link = upstream.link(args.upstream.headers());
    link.check_reachable().map_err(|error| Failure::new(exit_of(&error), error))?;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let mut signals = Signals::listen()?;
    let options = LinkOptions {
        message_bytes_max: ANSWER_BYTES_MAX,
        patience: ShutdownTimeouts { grace: GRACE, ..ShutdownTimeouts::default() },
        notice: Rc::new(terminal_output::warn),
    };
    let listing = lister_loop::run(&link, &options, args.timeout, &mut signals);
    let ended = runtime.block_on(LocalSet::new().run_until(listing));
    let listed = match ended.map_err(|error| Failure::new(exit_of(&error), error))? {
        ListingEnd::Signal(number) => return Ok(Err(number)),
        ListingEnd::Unheard(reason) => {
            // The text may come from the server, so escape it.
            let reason = visible_text::inline(&reason, WHY_CHARS_MAX);
            return Err(Failure::new(Exit::Transport, reason).into());
        }
        ListingEnd::Listed(listed) => listed,
    };
    for missing in &listed.missing {
        let reason = visible_text::inline(&missing.reason, WHY_CHARS_MAX);
        terminal_output::warn(&format!("`{}` was not answered: {reason}", missing.method));
    }
    let mut survey = ServerSurvey::default();
    for page in &listed.pages {
        survey.page(json::member(&page.answer, "result").unwrap_or(b"{}"));
    }
    report_oddities(&server, &survey);
    Ok(Ok(BTreeMap::from([(server, survey)])))
}

/// Warns of oddities in what a server offers.
fn report_oddities(server: &str, survey: &ServerSurvey) {
    let server = visible_text::inline(server, WHY_CHARS_MAX);
    for (offer, name) in survey.inconsistent_items() {
        let name = visible_text::inline(name, WHY_CHARS_MAX);
        let text = "is defined in several ways; the last one counts";
        terminal_output::warn(&format!("{server}: {} `{name}` {text}", offer.as_str()));
    }
    if survey.unnamed_count() > 0 {
        let text = "without a name cannot be accepted";
        terminal_output::warn(&format!("{server}: {} offered {text}", survey.unnamed_count()));
    }
}

fn unnamed_tape_failure(tape: &BacktestTape) -> Failure {
    let message = format!("cannot tell which server `{}` belongs to", tape.path.display());
    Failure::new(Exit::Usage, message).hint("name it with --server-id NAME")
}

fn exit_of(error: &LinkError) -> Exit {
    match error {
        LinkError::Spawn(_) | LinkError::Pipe(_) => Exit::Transport,
        LinkError::Upstream(_) => Exit::Usage,
    }
}
