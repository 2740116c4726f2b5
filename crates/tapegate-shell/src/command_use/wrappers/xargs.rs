//! The command that `xargs` runs.

use super::options::{self, parse};
use super::{CommandArgument, InnerCommand, WrapperUse, fill, unknown};

/// Options that turn the replacement of a placeholder off again.
const APPENDS: [&str; 4] = ["-L", "-n", "--max-args", "--max-lines"];

pub(super) fn descend(arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let Some(parsed) = parse(arguments, &options::XARGS) else {
        return unknown("`xargs` has options that are not known");
    };
    if parsed.words.is_empty() {
        return None;
    }
    let mut words: Vec<CommandArgument> = parsed.words.to_vec();
    let mut placeholders =
        parsed.options.iter().filter(|(option, _)| matches!(*option, "-I" | "--replace"));
    match (placeholders.next(), placeholders.next()) {
        (None, _) => words.push(CommandArgument::unknown()),
        (Some((_, Some(placeholder))), None)
            if !placeholder.is_empty() && !APPENDS.iter().any(|option| parsed.has(option)) =>
        {
            fill(&mut words, placeholder, false);
        }
        _ => return unknown("what `xargs` replaces is not known"),
    }
    let inner = vec![InnerCommand::Words(words)];
    Some(WrapperUse { inner, is_wrapper: false, keeps_folder: true })
}
