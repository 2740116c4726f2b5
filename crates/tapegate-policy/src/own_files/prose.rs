//! Text written for people, which may mention our names.
//!
//! Only texts under keys that hold either prose or something to run are checked here. When in
//! doubt, a text is not prose: a refusal can be explained, an overwritten policy cannot be undone.

/// The minimum number of words of a sentence that has no final punctuation.
const WORDS_MIN: usize = 4;
/// Words that begin sentences, but not commands. Shell keywords (`if`, `then`, `do`, `time`) and program
/// names (`as`, `at`, `from`, `look`, `who`, `yes`) do not belong here.
const OPENERS: [&str; 88] = [
    "a", "about", "actually", "added", "after", "all", "also", "an", "and", "any", "anyone", "are",
    "because", "before", "btw", "but", "can", "changed", "could", "did", "does", "don't",
    "everyone", "fixed", "fyi", "has", "have", "hello", "here", "here's", "hey", "hi", "how", "i",
    "i'd", "i'll", "i'm", "i've", "is", "it", "it's", "just", "let's", "may", "maybe", "my", "no",
    "nobody", "not", "now", "oh", "ok", "okay", "once", "our", "perhaps", "please", "removed",
    "renamed", "should", "since", "some", "someone", "sorry", "sure", "thank", "thanks", "that",
    "that's", "the", "their", "there", "these", "they", "this", "those", "updated", "was", "we",
    "we'll", "we're", "were", "what", "why", "will", "would", "wrote", "you",
];

/// Whether a line can only be a sentence, so that a shell would do nothing with it.
pub(super) fn is_prose(line: &str) -> bool {
    let line = line.trim().trim_start_matches(['#', '-', '*', ' ']);
    // With any of these, a line may do something in a shell whatever its first word is.
    if line.contains(['>', '<', '|', ';', '&', '$', '=', '\\', '{']) || !quotes_single_words(line) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    // A blank line runs nothing.
    let Some(first) = words.first() else { return true };
    let begins_sentence = is_capitalised(first) && !is_statement(first, line)
        || OPENERS.contains(&first.to_lowercase().trim_end_matches([',', ':']));
    let ends_sentence = line.ends_with(['.', '!', '?', ':']);
    // `Path('x')` is code; in prose a bracket opens a word.
    let is_call = |word: &&str| word.find('(').is_some_and(|at| at > 0);
    begins_sentence
        && !words.iter().any(is_call)
        && words.len() > 1
        && (words.len() >= WORDS_MIN || ends_sentence)
}

/// Whether a word begins with a capital as sentences do: `The`, but not `File.write`, `Set-Content`
/// or `VACUUM`.
fn is_capitalised(word: &str) -> bool {
    let word = word.trim_end_matches([',', ':', '.', '!', '?']);
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.all(|letter| letter.is_lowercase() || letter == '\'')
}

/// Whether a line is a statement of SQL, in any case: it begins with a verb and quotes a name.
fn is_statement(first: &str, line: &str) -> bool {
    let verbs = ["attach", "copy", "create", "export", "import", "install", "load", "select"];
    let more = ["insert", "update", "vacuum", "with", "replace", "pragma", "detach", "call"];
    let first = first.to_lowercase();
    (verbs.contains(&&*first) || more.contains(&&*first)) && line.contains(['\'', '"'])
}

/// Whether each text between backticks, which shells run, is a single word.
fn quotes_single_words(line: &str) -> bool {
    let mut quoted = line.split('`').skip(1).step_by(2);
    line.matches('`').count().is_multiple_of(2)
        && !quoted.any(|text| text.contains(char::is_whitespace))
}

/// Whether a query is a list of search words rather than a statement that names files, which would
/// quote them. A word with a slash must be a qualifier: `repo:a/b`.
pub(super) fn is_plain_query(text: &str) -> bool {
    let special =
        ['\'', '"', '`', '\\', '~', '>', '<', '|', ';', '&', '$', '=', '(', ')', '*', '\n'];
    let is_qualifier = |word: &str| {
        let qualifier = word.split('/').next().unwrap_or(word);
        qualifier.split_once(':').is_some_and(|(name, rest)| {
            let is_word = name.bytes().all(|byte| byte.is_ascii_alphabetic());
            is_word && !name.is_empty() && !rest.is_empty() && !name.eq_ignore_ascii_case("file")
        })
    };
    text.contains(' ')
        && !text.contains(special)
        && text.split_whitespace().all(|word| !word.contains('/') || is_qualifier(word))
}

/// Whether a text is the address of a page on another machine, even to a reader that takes it for a
/// path: it has no `..` and no escapes that could hide one.
pub(super) fn is_web_address(text: &str) -> bool {
    let scheme = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let Some(place) = scheme else { return false };
    let host = place.split(['/', '?', '#', ':']).next().unwrap_or(place);
    // A host that does not end in a letter may be an IP address of this machine.
    let is_named = host.contains('.') && host.ends_with(|last: char| last.is_ascii_alphabetic());
    let is_here = host.ends_with("localhost") || host.ends_with(".local");
    let plain = |letter: char| letter.is_ascii_graphic() && !"%\\@'\"`<>|;$".contains(letter);
    is_named && !is_here && !text.contains("..") && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_prose_and_commands_are_not() {
        for line in [
            "",
            "Edit `tapegate.yaml`.",
            "- See tapegate.yaml for more.",
            "The policy lives in tapegate.yaml and nobody edits it",
            "please run tapegate policy accept, tapegate.yaml changed",
            "I'll not touch tapegate.yaml, as it is protected.",
            "just updated tapegate.yaml, have a look",
            "did anyone change tapegate.yaml?",
            "hey, tapegate.yaml needs a new rule",
            "Update tapegate.yaml (the policy) before the release",
            "I've seen 'tapegate.yaml' in the diff",
        ] {
            assert!(is_prose(line), "{line}");
        }
        for line in [
            "tapegate.yaml",
            "Tapegate.yaml.",
            "cp x tapegate.yaml",
            "rm a, b, c, tapegate.yaml.",
            "X=1 cp a b c tapegate.yaml",
            "if rm x y tapegate.yaml",
            "do rm x y tapegate.yaml",
            "time rm x tapegate.yaml",
            "look at my tapegate.yaml",
            "The end; rm tapegate.yaml now",
            "The text `rm tapegate.yaml` is run",
            "The text `rm",
            "Echo all of it > tapegate.yaml",
            "Path('tapegate.yaml').write_text('owned by the agent now')",
            "File.write \"tapegate.yaml\", \"all is allowed now\"",
            "Set-Content tapegate.yaml with all of it",
            "VACUUM main INTO 'tapegate.lock'",
            "Attach database 'tapegate.lock' as x",
            "Then open('tapegate.yaml', 'w') for it",
        ] {
            assert!(!is_prose(line), "{line}");
        }
    }

    #[test]
    fn a_query_is_words_or_a_statement() {
        assert!(is_plain_query("tapegate.yaml reference"));
        assert!(is_plain_query("repo:x/y tapegate.yaml in:path"));
        for query in [
            "tapegate.yaml",
            "COPY t TO 'tapegate.yaml'",
            "select * from x",
            "cat ./tapegate.yaml",
            "cat file:/p/tapegate.yaml",
            "cat a/b:c/tapegate.yaml",
        ] {
            assert!(!is_plain_query(query), "{query}");
        }
    }
    #[test]
    fn a_web_address_is_on_another_machine() {
        for url in ["https://github.com/x/y/blob/main/tapegate.yaml", "http://a.example:80/x?y#z"] {
            assert!(is_web_address(url), "{url}");
        }
        for url in [
            "file:///p/tapegate.yaml",
            "https://a.example/../../../tapegate.yaml",
            "https://a.example/%2e%2e/tapegate.yaml",
            "http://localhost/tapegate.yaml",
            "http://127.0.0.1/tapegate.yaml",
            "http://2130706433/tapegate.yaml",
            "http://u@a.example/tapegate.yaml",
            "https://a.example/x tapegate.yaml",
            "tapegate.yaml",
        ] {
            assert!(!is_web_address(url), "{url}");
        }
    }
}
