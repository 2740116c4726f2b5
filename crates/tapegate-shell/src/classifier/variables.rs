//! Variables that commands can be given without changing what they do.

use super::{CommandEffects, EffectFinding, READS, found};

/// Variables that only affect how output looks, or that tools take for a plain switch.
const HARMLESS: [&str; 24] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "TERM",
    "TZ",
    "CARGO_TERM_COLOR",
    "BASH_SILENCE_DEPRECATION_WARNING",
    "COLORTERM",
];

/// Beginnings of names in lower case that programs read settings from.
const READ_BY_PROGRAMS: [&str; 5] = ["npm_", "pip_", "ld_", "yarn_", "bundle_"];

/// Whether a command may be given a variable without changing what the command does.
pub fn is_harmless_variable(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_") || is_local(name)
}

/// Whether a name is that of a variable of a script: programs read their settings from names in
/// upper case.
fn is_local(name: &str) -> bool {
    let is_script_name = name.len() == 1 || name.bytes().any(|byte| byte.is_ascii_lowercase());
    // `http_proxy` is read by most programs, although it is in lower case.
    let is_proxy = name.ends_with("_proxy");
    let is_setting = READ_BY_PROGRAMS.iter().any(|start| name.starts_with(start));
    // In mixed case, as `BASH_FUNC_ls%%`, and names of shell settings.
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_exported = ["BASH_", "histchars", "auto_resume"].iter().any(|one| name.starts_with(one));
    is_plain && is_script_name && !is_proxy && !is_setting && !is_exported
        || matches!(name, "_" | "OPTIND" | "REPLY")
}

/// The effects of assigning a variable.
pub(super) fn assignment(name: &str) -> EffectFinding {
    if is_harmless_variable(name) {
        return READS();
    }
    found(CommandEffects::UNKNOWN, format!("`{name}` is set, which programs may read"))
}
