//! Whatever arguments a call has: what a server that converts them takes for what a rule is about is stopped
//! by a rule that stops, and forwarded only if it is written so.
//!
//! The input is a trial as text: `[not] PATH TEST [OPERAND]`, a line end, the arguments.
#![no_main]

#[path = "../../crates/tapegate-policy/tests/it/converters.rs"]
mod converters;
#[path = "../../crates/tapegate-policy/tests/it/lookups.rs"]
mod lookups;
#[path = "../../crates/tapegate-policy/tests/it/predicate_trial.rs"]
mod predicate_trial;

use libfuzzer_sys::fuzz_target;
use predicate_trial::PredicateTrial;

fuzz_target!(|text: &str| {
    let Some((line, arguments)) = text.split_once('\n') else { return };
    if let Some(predicate) = PredicateTrial::read(line) {
        predicate.check(arguments);
    }
});
