//! A scenario in the role of the server.
