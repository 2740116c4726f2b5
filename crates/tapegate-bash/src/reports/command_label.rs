//! Names that group commands which differ only in their arguments, for counting.
//!
//! These names are for people who read statistics. Rules are never made from them.

/// Programs whose first plain argument says what they do.
const WITH_SUBCOMMAND: [&str; 22] = [
    "git",
    "npm",
    "pnpm",
    "yarn",
    "cargo",
    "docker",
    "kubectl",
    "go",
    "uv",
    "pip",
    "apt",
    "apt-get",
    "gh",
    "systemctl",
    "make",
    "brew",
    "poetry",
    "terraform",
    "helm",
    "dotnet",
    "bun",
    "rustup",
];
/// Subcommands that are followed by another one.
const DEEPER: [&str; 9] =
    ["compose", "run", "pr", "issue", "stash", "remote", "submodule", "worktree", "exec"];

/// The name of a command: `git status`, `npm run build`, `cat <file>`, `ls -la`.
pub fn label(command: &str) -> String {
    // A script is named by its first line; counting every script on its own would say nothing.
    let line = command.trim().lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    // `CI=1 npm test` counts as `npm test`.
    let start = words.iter().position(|word| !is_assignment(word)).unwrap_or(0);
    let Some((program, arguments)) = words[start..].split_first() else { return String::new() };
    let name = program.rsplit('/').next().unwrap_or(program);
    if is_compound(line) {
        // Only its beginning can be named.
        return format!("{} ...", label_of(name, &arguments[..end_of_first(arguments)]));
    }
    label_of(name, arguments)
}

fn label_of(program: &str, arguments: &[&str]) -> String {
    if WITH_SUBCOMMAND.contains(&program) {
        let mut plain = arguments.iter().skip_while(|word| word.starts_with(['-', '+']));
        let Some(first) = plain.next() else { return join(program, arguments) };
        let deeper = plain.next().filter(|word| DEEPER.contains(first) && !word.starts_with('-'));
        return match deeper {
            Some(second) => format!("{program} {first} {second}"),
            None => format!("{program} {first}"),
        };
    }
    join(program, arguments)
}

/// The program with its flags, and a sign for what kinds of arguments it has.
fn join(program: &str, arguments: &[&str]) -> String {
    let mut label = program.to_owned();
    let mut plain: Vec<&str> = Vec::new();
    for word in arguments {
        match word.strip_prefix('-') {
            // Long flags and those with values would make a name of their own for each command.
            Some(_) if word.len() <= 12 && !word.contains(['=', '/', '"', '\'']) => {
                label.push(' ');
                label.push_str(word);
            }
            Some(_) => {}
            None => plain.push(word),
        }
    }
    if let Some(first) = plain.first() {
        label.push_str(match () {
            () if first.contains("://") => " <url>",
            () if first.starts_with(['"', '\'']) => " <string>",
            () if first.bytes().all(|byte| byte.is_ascii_digit()) => " <number>",
            () if first.contains(['/', '.', '*']) => " <file>",
            () => " <arg>",
        });
    }
    label
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_compound(line: &str) -> bool {
    line.contains(['|', ';', '&', '>', '<'])
}

fn end_of_first(arguments: &[&str]) -> usize {
    let ends = |word: &&str| word.contains(['|', ';', '&', '>', '<']);
    arguments.iter().position(ends).unwrap_or(arguments.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_without_their_arguments() {
        for (command, expected) in [
            ("git status", "git status"),
            ("git diff HEAD~1 -- src", "git diff"),
            ("npm run build -- --watch", "npm run build"),
            ("docker compose up -d", "docker compose up"),
            ("cat package.json", "cat <file>"),
            ("cat src/main.rs", "cat <file>"),
            ("ls -la", "ls -la"),
            ("CI=1 /usr/bin/make test", "make test"),
            ("curl https://example.invalid", "curl <url>"),
            ("seq 5", "seq <number>"),
            ("echo 'a b'", "echo <string>"),
            ("cd src && ls", "cd <arg> ..."),
            ("git log | head", "git log ..."),
            ("  ", ""),
            ("A=1", "A=1"),
        ] {
            assert_eq!(label(command), expected, "{command}");
        }
    }
}
