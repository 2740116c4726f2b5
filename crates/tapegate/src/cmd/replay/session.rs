//! A replay, from its start to its exit code.

use std::cell::RefCell;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_core::player::{Notice, Options, Player};
use tapegate_store::loaded::Loaded;
use tapegate_wire::clock::Clock;
use tapegate_wire::deck::Deck;
use tapegate_wire::signals::Signals;
use tapegate_wire::stage::{self, Stage};
use tapegate_wire::stdio::{Cause, Patience};

use super::args::{Args, OnUnmatchedWord};
use super::copy;
use super::plan::Plan;
use super::telling::Teller;
use crate::exit::{Exit, Failure};
use crate::talk;
use crate::views::summary;
use crate::wiring::client_ports;

/// Plays the tape until the client has gone, a signal comes, or something is not on it.
pub(super) fn run(plan: Plan) -> anyhow::Result<Exit> {
    let clock = Clock::start();
    let copy = copy::open(&plan, clock)?;
    let options = plan.options();
    let Plan { args, tape, .. } = plan;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let player = Rc::new(RefCell::new(player(&args, tape, options)));
    let actor: Rc<RefCell<dyn Actor>> = player.clone();
    let stage = Stage::new(actor, clock, args.max_message_bytes, Patience::default());
    let mut deck = copy.as_ref().map(|copy| copy::deck(copy, clock));
    let cause = runtime.block_on(stage::run_stdio(&stage, client_ports()?, deck.as_mut(), signals));
    let exit = conclude(&args, &mut player.borrow_mut(), deck.as_mut(), &cause)?;
    copy.iter().filter(|_| !args.quiet).for_each(copy::say);
    Ok(exit)
}

/// A player of the tape that says what happens.
fn player(args: &Args, tape: Loaded, options: Options) -> Player {
    let mut teller = Teller {
        mode: options.mode,
        signer: options.signer.clone(),
        palette: talk::palette(),
        verbose: args.verbose,
        quiet: args.quiet,
        fatal: args.on_unmatched == OnUnmatchedWord::Error,
        warnings: 0,
    };
    let notice = Box::new(move |notice: Notice<'_>| teller.tell(&notice));
    Player::new(tape.index, Box::new(tape.reel), options, notice)
}

/// Says what came of the replay, writes it down, and finds the exit code.
fn conclude(
    args: &Args,
    player: &mut Player,
    deck: Option<&mut Deck>,
    cause: &Cause,
) -> anyhow::Result<Exit> {
    if let Some(error) = player.failure() {
        let words = format!("cannot read on in `{}`: {error}", args.recording.display());
        return Err(Failure::new(Exit::Io, words).into());
    }
    let summary = player.summary()?;
    if !args.quiet {
        talk::say(summary::text(&summary).trim_end());
    }
    if let Some(deck) = deck {
        copy::finish(player, deck).map_err(|error| Failure::new(Exit::Io, error))?;
    }
    Ok(match cause {
        Cause::Signal(number) => Exit::of_signal(*number),
        Cause::Actor => Exit::Diverged,
        Cause::Tape(error) => {
            talk::error(&format!("the session was stopped because {error}"), None);
            Exit::Io
        }
        _ => Exit::Ok,
    })
}
