//! The name the binary was started by, which help, usage, hints and errors show.
//!
//! One binary answers to several names through links. Most take the full command line;
//! `overwatch-mcp-tape` is only `tape`, and `cuff` has `record`, which is `sessions`, and `bash`.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;
use std::sync::OnceLock;

/// The name of the product and of its binary.
pub(crate) const PRODUCT: &str = "tapegate";
/// The link that stands for `tape`.
const TAPE_LINK: &str = "overwatch-mcp-tape";
/// The link whose `record` is our `sessions`.
const CUFF_LINK: &str = "cuff";

static NAME: OnceLock<String> = OnceLock::new();

/// Remembers the name from the command line. Only the first call has an effect.
pub(crate) fn set_name(argv: &[OsString]) {
    let name = argv.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    let is_plain = |name: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
        !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain)
    };
    NAME.set(name.filter(is_plain).unwrap_or(PRODUCT).to_owned()).ok();
}

/// The name the binary was started by.
pub(crate) fn name() -> &'static str {
    NAME.get().map_or(PRODUCT, String::as_str)
}

/// Whether the name stands for `tape`.
pub(crate) fn is_tape() -> bool {
    name() == TAPE_LINK
}

/// Whether the name has a command line of its own, with `record` and `bash`.
pub(crate) fn is_cuff() -> bool {
    name() == CUFF_LINK
}

/// A command line of ours, such as `approvals show ID`, in the form that works under this name.
pub(crate) fn command(message: impl Display) -> String {
    line(name(), &message.to_string())
}

/// A help text of ours, whose examples are written with the product's name. Not for texts that
/// contain anything written by a user.
pub(crate) fn rename_in_help(text: &str) -> String {
    rename_in_text(name(), text)
}

fn line(name: &str, message: &str) -> String {
    match (name, message.split_once(' ').unwrap_or((message, ""))) {
        (TAPE_LINK, ("tape", "")) => name.to_owned(),
        (TAPE_LINK, ("tape", rest)) => format!("{name} {rest}"),
        // The link cannot run anything else, but the binary it points to can.
        (TAPE_LINK, _) => format!("{PRODUCT} {message}"),
        (CUFF_LINK, ("sessions", "")) => format!("{name} record"),
        (CUFF_LINK, ("sessions", rest)) => format!("{name} record {rest}"),
        (CUFF_LINK, ("bash", _)) => format!("{name} {message}"),
        (CUFF_LINK, _) => format!("{PRODUCT} {message}"),
        _ => format!("{name} {message}"),
    }
}

fn rename_in_text(name: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(PRODUCT) {
        let (before, from) = rest.split_at(at);
        let after = &from[PRODUCT.len()..];
        let starts = before.chars().next_back().or(out.chars().next_back());
        let is_word = starts.is_none_or(|letter| matches!(letter, ' ' | '\n' | '`' | '"'));
        out.push_str(before);
        // In a client's config the name is in quotes by itself, with `tape` after it.
        let quoted = "\",\n    \"args\": [\"tape\", ";
        match (is_word, after.strip_prefix(' '), after.strip_prefix(quoted)) {
            (true, Some(message), _) => {
                let (first, _) = message.split_once([' ', '\n', '`']).unwrap_or((message, ""));
                if name == CUFF_LINK && first == "sessions" {
                    out.push_str(&line(name, first));
                    rest = &after[1 + first.len()..];
                    continue;
                }
                let end = if name == TAPE_LINK && first == "tape" { 1 + first.len() } else { 0 };
                out.push_str(line(name, first).strip_suffix(&format!(" {first}")).unwrap_or(name));
                rest = &after[end..];
            }
            (true, None, Some(arguments)) if name == TAPE_LINK => {
                out.push_str(&format!("{name}\",\n    \"args\": ["));
                rest = arguments;
            }
            (true, None, _) if after.starts_with("\",") && name != TAPE_LINK => {
                out.push_str(name);
                rest = after;
            }
            _ => {
                out.push_str(PRODUCT);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The same clap command with the current name in all its texts.
pub(crate) fn rename_command(command: clap::Command) -> clap::Command {
    if name() == PRODUCT {
        return command;
    }
    let texts =
        |text: Option<&clap::builder::StyledStr>| text.map(|it| rename_in_help(&it.to_string()));
    let (about, long) = (texts(command.get_about()), texts(command.get_long_about()));
    let (after, after_long) =
        (texts(command.get_after_help()), texts(command.get_after_long_help()));
    let mut command = command.mut_args(|arg| {
        let (help, long) = (texts(arg.get_help()), texts(arg.get_long_help()));
        let arg = match help {
            Some(help) => arg.help(help),
            None => arg,
        };
        match long {
            Some(long) => arg.long_help(long),
            None => arg,
        }
    });
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long) = long {
        command = command.long_about(long);
    }
    if let Some(after) = after {
        command = command.after_help(after);
    }
    if let Some(after) = after_long {
        command = command.after_long_help(after);
    }
    command.mut_subcommands(rename_command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_work_under_the_name_they_are_shown_with() {
        assert_eq!(line("thoughtjack", "approvals show x"), "thoughtjack approvals show x");
        assert_eq!(line(TAPE_LINK, "tape --tape x -- y"), "overwatch-mcp-tape --tape x -- y");
        assert_eq!(line(TAPE_LINK, "tape"), "overwatch-mcp-tape");
        assert_eq!(line(TAPE_LINK, "approvals"), "tapegate approvals");
        assert_eq!(line(CUFF_LINK, "sessions list"), "cuff record list");
        assert_eq!(line(CUFF_LINK, "sessions"), "cuff record");
        assert_eq!(line(CUFF_LINK, "bash --http :1"), "cuff bash --http :1");
        assert_eq!(line(CUFF_LINK, "hub"), "tapegate hub");
        let text =
            "  tapegate sessions list\n  tapegate bash\n`tapegate --help`, `tapegate sessions`";
        assert_eq!(
            rename_in_text(CUFF_LINK, text),
            "  cuff record list\n  cuff bash\n`tapegate --help`, `cuff record`"
        );
    }

    #[test]
    fn only_commands_are_renamed_in_help_texts() {
        let text = "run `tapegate hub`, `tapegate`, or\n  tapegate check tapegate.yaml .tapegate/x\n\
                    tapegate tape -- s | tapegate show -\n{\"command\": \"tapegate\",\n    \
                    \"args\": [\"tape\", \"--tape\"]}";
        assert_eq!(
            rename_in_text("thoughtjack", text),
            "run `thoughtjack hub`, `tapegate`, or\n  thoughtjack check tapegate.yaml .tapegate/x\n\
             thoughtjack tape -- s | thoughtjack show -\n{\"command\": \"thoughtjack\",\n    \
             \"args\": [\"tape\", \"--tape\"]}"
        );
        assert_eq!(
            rename_in_text(TAPE_LINK, text),
            "run `tapegate hub`, `tapegate`, or\n  tapegate check tapegate.yaml .tapegate/x\n\
             overwatch-mcp-tape -- s | tapegate show -\n{\"command\": \"overwatch-mcp-tape\",\n    \
             \"args\": [\"--tape\"]}"
        );
        assert_eq!(rename_in_text(PRODUCT, text), text);
    }
}
