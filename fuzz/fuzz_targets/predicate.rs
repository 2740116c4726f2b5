//! Whatever arguments a call has: if a server that converts them finds what a denying rule is about, the rule
//! denies the call. A permitting rule permits it only if the arguments are written exactly so.
//!
//! The input is a trial as text: `[not] PATH TEST [OPERAND]`, a line end, the arguments.
#![no_main]

#[path = "../../crates/tapegate-policy/tests/it/argument_lookup.rs"]
mod argument_lookup;
#[path = "../../crates/tapegate-policy/tests/it/converters.rs"]
mod converters;
#[path = "../../crates/tapegate-policy/tests/it/predicate_trial.rs"]
mod predicate_trial;

use libfuzzer_sys::fuzz_target;
use predicate_trial::PredicateTrial;

fuzz_target!(|text: &str| {
    let Some((line, arguments)) = text.split_once('\n') else { return };
    if let Some(trial) = PredicateTrial::read(line) {
        trial.check(arguments);
    }
});
