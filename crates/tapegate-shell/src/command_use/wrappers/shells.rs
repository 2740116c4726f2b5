//! Shells that run a command line from their arguments.

use super::{CommandArgument, InnerCommand, LinePlace, WrapperUse, unknown};
use crate::command_tree::RedirectionKind;
use crate::command_use::{CommandUse, RedirectionUse};

/// The command line that a shell runs.
pub(super) fn descend(shell: &str, one: &CommandUse) -> Option<WrapperUse> {
    let mut words = one.arguments().iter();
    let mut takes_line = false;
    let mut operand: Option<&CommandArgument> = None;
    while let Some(word) = words.next() {
        let Some(text) = &word.text else {
            if word.may_be_option() {
                return unknown("a shell has arguments that are not known");
            }
            operand = Some(word);
            break;
        };
        let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty());
        match letters {
            // Prints the version and runs nothing.
            Some("-version") => return None,
            Some("-norc" | "-noprofile") => {}
            Some(letters) if letters.bytes().all(|letter| b"ceux".contains(&letter)) => {
                takes_line |= letters.contains('c');
            }
            Some("o" | "eo" | "euo" | "ceuo" | "euxo")
                if words.as_slice().first().is_some_and(|value| value.is("pipefail")) =>
            {
                takes_line |= text.contains('c');
                words.next();
            }
            Some(_) => return unknown("a shell has options that are not known"),
            None => {
                operand = Some(word);
                break;
            }
        }
    }
    let line = match operand {
        // A tilde would be expanded by the outer shell, to a text that is unknown here.
        Some(operand) if takes_line => operand.text.clone().filter(|_| !operand.has_tilde),
        Some(_) => None,
        // Without a script, a shell runs its input.
        None => here_string(one),
    };
    let Some(line) = line else {
        return unknown("a shell runs commands that are not in the line");
    };
    let place = if shell == "bash" { LinePlace::NewShell } else { LinePlace::NewPosixShell };
    let inner = vec![InnerCommand::Line { text: line, place }];
    Some(WrapperUse { inner, is_wrapper: true, keeps_folder: true })
}

/// The text of a here-string, if that is the only thing that the shell may read.
fn here_string(one: &CommandUse) -> Option<String> {
    let is_output = |redirection: &&RedirectionUse| matches!(redirection.descriptor, Some(1 | 2));
    let mut others = one.redirections.iter().filter(|redirection| !is_output(redirection));
    let only = others
        .next()
        .filter(|input| input.kind == RedirectionKind::Text && input.descriptor == Some(0))?;
    if others.next().is_some() { None } else { only.target.text.clone() }
}
