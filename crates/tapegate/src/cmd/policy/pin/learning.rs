//! Learns what servers offer, from tapes or from the servers themselves.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Frame, Kind};
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_core::tape::Line;
use tapegate_policy::model::Policy;
use tapegate_policy::pins::Survey;
use tapegate_store::source::Source;
use tapegate_wire::link::{LinkError, LinkOptions};
use tapegate_wire::listing::{self, End};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::Patience;
use tokio::task::LocalSet;

use super::super::backtest::shelf::{self, Tape};
use super::Args;
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::settings::server_id;
use crate::talk;
use crate::upstream::Upstream;
use crate::views::visible;

/// How long a server has to exit by itself.
const GRACE: Duration = Duration::from_secs(1);
/// The largest answer accepted from a server.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How many characters of an error from the server are shown.
const WHY_CHARS_MAX: usize = 600;

/// What servers offer, by server id; or the signal that interrupted the query.
type Learnt = Result<BTreeMap<String, Survey>, i32>;

/// Learns what servers offer from the tapes or from the live server.
pub(super) fn learn(args: &Args, policy: Option<&Policy>) -> anyhow::Result<Learnt> {
    match (args.upstream.named()?, args.tapes.is_empty()) {
        (Some(upstream), true) => live(args, upstream),
        (None, false) => Ok(Ok(taped(args, policy)?)),
        (Some(_), false) => {
            Err(Failure::new(Exit::Usage, "give either a server or tapes, not both").into())
        }
        (None, true) => {
            let words = "no tapes and no server are named";
            let hint =
                "name tapes, or a server: `-- CMD ARGS`, `--upstream CMD`, `--upstream-http URL`";
            Err(Failure::new(Exit::Usage, words).hint(hint).into())
        }
    }
}

/// Learns from tapes.
fn taped(args: &Args, policy: Option<&Policy>) -> anyhow::Result<BTreeMap<String, Survey>> {
    let mut learnt: BTreeMap<String, Survey> = BTreeMap::new();
    for tape in shelf::find(&args.tapes)? {
        let server = match (&args.server_id, policy) {
            (Some(named), _) => named.clone(),
            (None, policy) => tape.own_name(policy).ok_or_else(|| nameless(&tape))?,
        };
        let survey = learnt.entry(server).or_default();
        let before = survey.len();
        read(&tape, survey)?;
        if survey.is_empty() && before == 0 {
            talk::warn(&format!("`{}` contains no lists", tape.path.display()));
        }
    }
    learnt.retain(|_, survey| !survey.is_empty());
    if learnt.is_empty() {
        let words = "the tapes contain no lists of what their servers offer";
        return Err(Failure::new(Exit::Invalid, words).into());
    }
    for (server, survey) in &learnt {
        told(server, survey);
    }
    Ok(learnt)
}

fn read(tape: &Tape, survey: &mut Survey) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Io, format!("cannot read `{}`: {error}", tape.path.display()))
    };
    let path = &tape.path;
    let mut source = Source::open(path, talk::progress(path)).map_err(|error| cannot(&error))?;
    while let Some(next) = source.reader.next() {
        let Ok(numbered) = next else { continue };
        let Line::Message(message) = &numbered.entry else { continue };
        if message.from != Side::Server || message.ours {
            continue;
        }
        let frame = Frame::read(&message.msg);
        let said = frame.envelope().filter(|said| said.kind() == Kind::Response && said.lists);
        survey.page(said.and_then(|said| said.result).unwrap_or(b"{}"));
    }
    Ok(())
}

/// Learns from a live server.
fn live(args: &Args, upstream: Upstream) -> anyhow::Result<Learnt> {
    let server = args.server_id.clone().unwrap_or_else(|| server_id(&upstream));
    let link = upstream.link(args.upstream.headers());
    link.look_for().map_err(|error| Failure::new(exit_of(&error), error))?;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let mut signals = Signals::listen()?;
    let options = LinkOptions {
        message_bytes_max: ANSWER_BYTES_MAX,
        patience: Patience { grace: GRACE, ..Patience::default() },
        notice: Rc::new(talk::warn),
    };
    let listing = listing::run(&link, &options, args.timeout, &mut signals);
    let ended = runtime.block_on(LocalSet::new().run_until(listing));
    let listed = match ended.map_err(|error| Failure::new(exit_of(&error), error))? {
        End::Signal(number) => return Ok(Err(number)),
        End::Unheard(why) => {
            // The text may come from the server, so escape it.
            let why = visible::inline(&why, WHY_CHARS_MAX);
            return Err(Failure::new(Exit::Transport, why).into());
        }
        End::Listed(listed) => listed,
    };
    for missing in &listed.missing {
        let why = visible::inline(&missing.why, WHY_CHARS_MAX);
        talk::warn(&format!("`{}` was not answered: {why}", missing.method));
    }
    let mut survey = Survey::default();
    for page in &listed.pages {
        survey.page(json::member(&page.answer, "result").unwrap_or(b"{}"));
    }
    told(&server, &survey);
    Ok(Ok(BTreeMap::from([(server, survey)])))
}

/// Warns of oddities in what a server offers.
fn told(server: &str, survey: &Survey) {
    let server = visible::inline(server, WHY_CHARS_MAX);
    for (offer, name) in survey.fickle() {
        let name = visible::inline(name, WHY_CHARS_MAX);
        let words = "is defined in several ways; the last one counts";
        talk::warn(&format!("{server}: {} `{name}` {words}", offer.word()));
    }
    if survey.nameless() > 0 {
        let words = "without a name cannot be accepted";
        talk::warn(&format!("{server}: {} offered {words}", survey.nameless()));
    }
}

fn nameless(tape: &Tape) -> Failure {
    let words = format!("cannot tell which server `{}` belongs to", tape.path.display());
    Failure::new(Exit::Usage, words).hint("name it with --server-id NAME")
}

fn exit_of(error: &LinkError) -> Exit {
    match error {
        LinkError::Spawn(_) => Exit::Transport,
        LinkError::Upstream(_) => Exit::Usage,
    }
}
