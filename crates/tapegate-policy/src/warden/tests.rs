//! The warden.
