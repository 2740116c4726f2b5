//! `tapegate shim`, end to end: the real binary, real processes, real signals.

mod approval_places;
mod approvals;
mod batches;
mod decisions;
mod elsewhere;
mod endings;
mod forgeries;
mod framing;
mod hub;
mod lists;
mod masking;
mod masking_stdio;
mod memory;
mod orphans;
mod passing;
mod pins;
mod reloads;
pub(crate) mod stand;
mod start;
mod start_settings;
mod stress;
mod trust;
mod trust_changes;
mod trust_nearer;
mod trust_places;
mod user_state;
mod web;
