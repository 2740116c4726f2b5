//! Other systems than Linux have nothing to build a sandbox from.

use super::Sandbox;

pub(super) fn check(_: &Sandbox) -> Result<(), String> {
    Err("`sandbox` works only on Linux".to_owned())
}

pub(super) fn apply(sandbox: &Sandbox) -> Result<(), String> {
    check(sandbox)
}
