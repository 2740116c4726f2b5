//! The governance service that many shims share.
