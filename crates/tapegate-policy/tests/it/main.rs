//! The gate as its users see it: policies as text, messages as bytes, verdicts. Also the published,
//! generated and redacted texts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod annotations;
mod approvals;
mod argument_lookup;
mod batches;
mod bypasses;
mod call_independence;
mod cedar;
mod coercion;
mod completions;
mod converters;
mod folders;
mod gate_harness;
mod generated_policies;
mod in_agent;
mod lenient_readers;
mod list_replies;
mod matrix;
mod methods;
mod own_lists;
mod pins;
mod predicate_trial;
mod properties;
mod prototypes;
mod published_docs;
mod redaction;
mod refusal_texts;
mod relay_sessions;

mod sessions;
mod spellings;
mod subscriptions;
