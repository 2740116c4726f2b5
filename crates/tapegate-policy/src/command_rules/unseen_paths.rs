//! Commands whose paths are not all in their words: scripts in an argument that open files
//! themselves, and links, by which later commands leave the folder.

use tapegate_shell::classifier::CommandClass;
use tapegate_shell::command_tree::RedirectionKind;
use tapegate_shell::command_use::{CommandArgument, CommandUse};

const SCRIPT_PROGRAMS: [&str; 6] = ["awk", "gawk", "gsed", "mawk", "nawk", "sed"];
/// Programs that run code from an argument.
const INTERPRETERS: [&str; 15] = [
    "bun", "deno", "ed", "ex", "expect", "lua", "node", "nodejs", "nvim", "perl", "php", "python",
    "python3", "ruby", "vim",
];
/// The letters and names of the options that do so.
const CODE_LETTERS: [char; 6] = ['c', 'e', 'E', 'r', 'p', '+'];
const CODE_NAMES: [&str; 6] = ["eval", "print", "exec", "run", "require", "import"];
/// Programs that make whatever links an archive or a patch names.
const UNPACKERS: [&str; 8] = ["7z", "bsdtar", "cpio", "pax", "patch", "rsync", "unzip", "untar"];
const GIT_UNPACKERS: [&str; 5] = ["am", "apply", "fast-import", "mktree", "update-index"];

/// Whether a script among the arguments may open any file.
pub(super) fn has_open_script(one: &CommandUse) -> bool {
    let Some(program) = one.program() else { return true };
    if SCRIPT_PROGRAMS.contains(&program) {
        return one.effects.class() >= CommandClass::RunsCommands;
    }
    if !INTERPRETERS.contains(&program.trim_end_matches(|letter| ".0123456789".contains(letter)))
        && !INTERPRETERS.contains(&program)
    {
        return false;
    }
    let mut options = one.arguments().iter().take_while(|word| word.may_be_option());
    let has_input = one.redirections.iter().any(|one| one.kind == RedirectionKind::Text);
    has_input || options.any(may_be_code_option)
}

fn may_be_code_option(word: &CommandArgument) -> bool {
    let Some(text) = &word.text else { return true };
    match text.strip_prefix("--") {
        Some(long) => CODE_NAMES.iter().any(|name| long.contains(name)),
        None => text.contains(CODE_LETTERS),
    }
}

/// Whether a command may make a symbolic link that leads out of the folder that it is in, or that
/// does so after it was moved.
pub(super) fn may_link_out(one: &CommandUse) -> bool {
    let program = one.program().unwrap_or_default();
    let mut texts = one.arguments().iter().map(|word| word.text.as_deref());
    match program {
        "ln" => links_out(one.arguments()),
        "cp" => texts.any(|text| {
            text.is_none_or(|text| has_letter(text, "s") || is_long(text, "--symbolic-link"))
        }),
        "tar" => {
            let is_mode = one.arguments().first().is_some_and(|word| word.prefix.contains('x'));
            is_mode
                || texts.any(|text| {
                    text.is_none_or(|text| {
                        has_letter(text, "x")
                            || is_long(text, "--extract")
                            || is_long(text, "--get")
                    })
                })
        }
        "git" => texts.any(|text| text.is_none_or(|text| GIT_UNPACKERS.contains(&text))),
        program => UNPACKERS.contains(&program),
    }
}

/// Whether `ln` may make a symbolic link to something else than a path below the link's folder.
fn links_out(arguments: &[CommandArgument]) -> bool {
    let texts: Option<Vec<&str>> = arguments.iter().map(|word| word.text.as_deref()).collect();
    let Some(texts) = texts else { return true };
    let is_symbolic = |text: &&str| has_letter(text, "s") || is_long(text, "--symbolic");
    if !texts.iter().any(is_symbolic) {
        return false;
    }
    let (options, operands): (Vec<&str>, Vec<&str>) =
        texts.into_iter().partition(|text| text.starts_with('-'));
    // Others change where the link is, or what its target is.
    let is_plain = |text: &&str| match text.strip_prefix("--") {
        Some(long) => ["", "symbolic", "force", "verbose"].contains(&long),
        None => text[1..].bytes().all(|letter| b"sfnv".contains(&letter)),
    };
    // With one operand, the link is in the current folder.
    let targets = operands.split_last().map_or(&[][..], |(last, targets)| match targets {
        [] => std::slice::from_ref(last),
        targets => targets,
    });
    // A target with only names is below the link's folder, also after the link was moved, and never
    // nearer to the root than the link: `..` after the link leads no further up than its path says.
    let descends = |target: &&str| {
        !target.is_empty() && target.split('/').all(|step| !["", ".", ".."].contains(&step))
    };
    !options.iter().all(is_plain) || !targets.iter().all(descends)
}

/// Whether a text is a cluster of options with one of these letters.
fn has_letter(text: &str, letters: &str) -> bool {
    let cluster = text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
    cluster.is_some_and(|cluster| cluster.contains(|letter| letters.contains(letter)))
}

/// Whether a text is a long option, which may be shortened.
fn is_long(text: &str, name: &str) -> bool {
    text.len() > 2 && name.starts_with(text.split('=').next().unwrap_or_default())
}
