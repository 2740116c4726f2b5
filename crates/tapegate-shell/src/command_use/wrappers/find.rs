//! The commands that `find` runs.

use super::{CommandArgument, InnerCommand, WrapperUse, fill, unknown};

/// The commands in `-exec` and its relatives.
pub(super) fn descend(arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let mut inner = Vec::new();
    let mut keeps_folder = true;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some("-exec" | "-execdir" | "-ok" | "-okdir") = word.text.as_deref() else { continue };
        keeps_folder &= !word.prefix.ends_with("dir");
        let mut command: Vec<CommandArgument> = Vec::new();
        loop {
            let Some(word) = words.next() else {
                return unknown("`find -exec` has no end that is known");
            };
            // A `+` elsewhere is an argument of the command.
            let after_files = word.is("+") && command.last().is_some_and(|word| word.is("{}"));
            if word.is(";") || after_files {
                break;
            }
            command.push(word.clone());
        }
        // Paths begin as the folder does that `find` starts in.
        let starts_safely = arguments.first().is_some_and(|start| !start.may_be_option());
        fill(&mut command, "{}", starts_safely);
        inner.push(InnerCommand::Words(command));
    }
    (!inner.is_empty()).then_some(WrapperUse { inner, is_wrapper: false, keeps_folder })
}
