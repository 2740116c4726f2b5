//! Commands that only list folders.

/// Programs that change nothing, whatever their options.
const LISTERS: [&str; 4] = ["df", "du", "ls", "stat"];

/// Whether a command only lists folders or their sizes. Apart from `~`, it contains no character that is
/// special to a shell.
pub(super) fn is_listing(command: &str) -> bool {
    let is_plain = |letter: char| {
        letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | '~' | '=' | ' ')
    };
    // A blank is the only separator that `is_plain` accepts, so there is one command.
    let program = command.split(' ').next().unwrap_or_default();
    LISTERS.contains(&program) && command.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_one_command_that_changes_nothing() {
        for command in ["ls", "du -sh ~/.local", "du -h --max-depth=1 /home/u/.local/state/"] {
            assert!(is_listing(command), "{command}");
        }
        for command in [
            "",
            "rm -r ~/.local",
            "find ~/.local -delete",
            "tree -o x ~/.local",
            "./ls ~/.local",
            "X=1 ls ~/.local",
            "ls ~/.local; rm x",
            "ls ~/.local\nrm x",
            "ls ~/.local > x",
            "ls ~/.local | xargs rm",
            "ls $(rm x)",
            "ls `rm x`",
            "ls ~/.loc*",
            "LS ~/.local",
        ] {
            assert!(!is_listing(command), "{command}");
        }
    }
}
