//! `tapegate serve`: scenarios in the role of the server, on stdio and by HTTP.

mod agent;
mod behave;
mod behave_http;
mod library;
mod rogue;
