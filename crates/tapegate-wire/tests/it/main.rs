//! The wire, tested with real pipes and real time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod behind;
mod bridges;
mod cast;
mod clerk;
mod crowds;
mod endpoint;
mod errands;
mod gates;
mod guard;
mod hall;
mod house;
mod older;
mod partings;
mod pieces;
mod pipes;
mod raw;
mod seats;
mod stage;
mod web;
