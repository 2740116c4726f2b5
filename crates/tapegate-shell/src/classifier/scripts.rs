//! What `sed` and `awk` scripts do. Only scripts of simple commands count as read.

use super::{CommandEffects, EffectFinding, READS, found};
use crate::command_use::CommandArgument;

pub(super) fn classify(program: &str, arguments: &[CommandArgument]) -> Option<EffectFinding> {
    match program {
        "sed" | "gsed" => Some(sed(arguments)),
        "awk" | "gawk" | "mawk" | "nawk" => Some(awk(arguments)),
        _ => None,
    }
}

fn sed(arguments: &[CommandArgument]) -> EffectFinding {
    let unknown = |reason: &str| found(CommandEffects::WRITES | CommandEffects::RUNS, reason);
    let mut scripts: Vec<&str> = Vec::new();
    let mut has_expression = false;
    let mut operands = 0;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text.as_deref() else {
            // The first operand is the script, unless `-e` gave one.
            if word.may_be_option() || !has_expression && operands == 0 {
                return unknown("the script of `sed` is not known");
            }
            operands += 1;
            continue;
        };
        let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty());
        match letters {
            // Clusters in which `e` is last, so that the next word is its value.
            Some("e" | "ne" | "Ee" | "nEe" | "-expression") => {
                let Some(script) = words.next().and_then(|script| script.text.as_deref()) else {
                    return unknown("the script of `sed` is not known");
                };
                has_expression = true;
                scripts.push(script);
            }
            Some("-quiet" | "-silent" | "-regexp-extended" | "-null-data" | "-separate") => {}
            Some(letters) if letters.bytes().all(|letter| b"nErsuz".contains(&letter)) => {}
            Some(_) => return unknown("`sed` may have an option that changes files"),
            None => {
                if !has_expression && operands == 0 {
                    scripts.push(text);
                }
                operands += 1;
            }
        }
    }
    // An expression after the first operand makes that operand a file.
    if scripts.iter().all(|script| SedScript { rest: script }.only_reads()) {
        READS()
    } else {
        unknown("the script of `sed` may write files or run commands")
    }
}

/// A `sed` script that is still to be read.
struct SedScript<'a> {
    rest: &'a str,
}

impl<'a> SedScript<'a> {
    /// Whether there are only commands that neither write nor run anything.
    fn only_reads(mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
            if self.rest.is_empty() {
                return true;
            }
            if self.command().is_none() {
                return false;
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    /// Takes a command with its addresses.
    fn command(&mut self) -> Option<()> {
        self.address()?;
        self.skip(' ');
        if self.rest.starts_with(',') {
            self.next();
            self.skip(' ');
            self.address()?;
        }
        self.rest = self.rest.trim_start_matches([' ', '!']);
        match self.next()? {
            's' => {
                let delimiter = self.delimiter()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
                // Without `e` and `w`, which run the result and write it.
                self.rest = self.rest.trim_start_matches(|flag: char| {
                    flag.is_ascii_digit() || "gpIiMm".contains(flag)
                });
                self.command_end()
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
                self.command_end()
            }
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'l' => {
                self.command_end()
            }
            'q' | 'Q' => {
                self.rest = self.rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
                self.command_end()
            }
            '{' => Some(()),
            _ => None,
        }
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|letter| !letter.is_alphanumeric() && !"\\\n ;".contains(*letter))
    }

    fn skip(&mut self, letter: char) {
        self.rest = self.rest.trim_start_matches(letter);
    }

    fn command_end(&mut self) -> Option<()> {
        self.skip(' ');
        (self.rest.is_empty() || self.rest.starts_with([';', '\n', '}'])).then_some(())
    }

    /// Takes an address, if there is one.
    fn address(&mut self) -> Option<()> {
        match self.rest.chars().next() {
            Some('/') => {
                self.next();
                self.until('/')?;
                self.rest = self.rest.trim_start_matches(['I', 'M']);
            }
            // `\%…%` is an address with a delimiter of its own, which is rare.
            Some('\\') => return None,
            Some(first) if first.is_ascii_digit() || "$+~".contains(first) => {
                self.rest = self.rest.trim_start_matches(|letter: char| {
                    letter.is_ascii_digit() || "$+~".contains(letter)
                });
            }
            _ => {}
        }
        Some(())
    }

    /// Takes text up to a delimiter. A class such as `[/]` may hold the delimiter, and versions of
    /// `sed` differ in that, so a script with both is not read.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut in_class = false;
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                letter if letter == delimiter && in_class => return None,
                letter if letter == delimiter => return Some(()),
                '[' => in_class = true,
                ']' => in_class = false,
                _ => {}
            }
        }
    }
}

fn awk(arguments: &[CommandArgument]) -> EffectFinding {
    let effects = CommandEffects::WRITES | CommandEffects::RUNS;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text.as_deref() else {
            return found(effects, "the script of `awk` is not known");
        };
        match text {
            "-F" | "-v" => {
                if words.next().is_none_or(|value| !value.is_one_word()) {
                    return found(effects, "the script of `awk` is not known");
                }
            }
            "--" => {}
            text if text.starts_with("-F") || text.starts_with("-v") => {}
            text if text.starts_with('-') => {
                return found(effects, format!("`awk {text}` may read its script from a file"));
            }
            script if awk_only_reads(script) => return READS(),
            _ => return found(effects, "the script of `awk` may write files or run commands"),
        }
    }
    READS()
}

/// Whether a script has nothing that writes or runs. A `>` after any `print` may be a redirection.
fn awk_only_reads(script: &str) -> bool {
    let has_word = ["system", "getline", "close", "fflush", "@", "\\x", "\\0", "\\\n"]
        .iter()
        .any(|word| script.contains(word));
    // Each `|` starts a program.
    let pipes = script.replace("||", "").contains('|');
    let print = script.find("print");
    let redirects = print.is_some_and(|at| script[at..].contains('>'));
    !has_word && !pipes && !redirects
}
