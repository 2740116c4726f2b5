//! The gate as its users see it: policies as text, messages as bytes, verdicts. Also the published,
//! generated and redacted texts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alike;
mod annotations;
mod approving;
mod batches;
mod bypasses;
mod cedar;
mod coercing;
mod completions;
mod converters;
mod folders;
mod generated;
mod listing;
mod lists;
mod lookups;
mod matrix;
mod methods;
mod pins;
mod predicate_trial;
mod properties;
mod prototypes;
mod published;
mod readers;
mod redaction;
mod relayed;
mod rig;
mod sessions;
mod spellings;
mod subscribing;
