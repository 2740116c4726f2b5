//! The wire, tested with real pipes and real time.

mod cast;
mod house;
mod stage;
