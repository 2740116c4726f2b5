//! What is written for people to read, and so may mention a name of ours.
//!
//! Only texts under keys that hold prose or something that is run are looked at here. In doubt a text is
//! not prose: a refusal can be understood, and a policy that was overwritten cannot be undone.

/// How many words a sentence has that does not end like one.
const WORDS_MIN: usize = 4;
/// Words that sentences begin with, and commands do not.
const OPENERS: [&str; 26] = [
    "are", "can", "could", "hello", "hi", "how", "i", "i'll", "i'm", "i've", "it", "it's", "may",
    "my", "ok", "our", "please", "should", "that", "the", "there", "this", "we", "what", "why",
    "you",
];

/// Whether a line can only be a sentence, and no shell would do anything by it.
pub(super) fn is_prose(line: &str) -> bool {
    let line = line.trim().trim_start_matches(['#', '-', '*', ' ']);
    if line.contains(['>', '<', '|', ';', '&', '$', '=', '\\', '{']) || !quotes_single_words(line) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(first) = words.first() else { return true };
    let begins_sentence = first.starts_with(char::is_uppercase)
        || OPENERS.contains(&first.to_lowercase().trim_end_matches([',', ':']));
    let ends_sentence = line.ends_with(['.', '!', '?', ':']);
    begins_sentence && words.len() > 1 && (words.len() >= WORDS_MIN || ends_sentence)
}

/// Whether what stands between backticks, which shells run, is one word each time.
fn quotes_single_words(line: &str) -> bool {
    let mut quoted = line.split('`').skip(1).step_by(2);
    line.matches('`').count().is_multiple_of(2)
        && !quoted.any(|text| text.contains(char::is_whitespace))
}

/// Whether a query is words to search for, and not a statement that names files: those quote them.
pub(super) fn is_plain_query(text: &str) -> bool {
    let special =
        ['\'', '"', '`', '/', '\\', '~', '>', '<', '|', ';', '&', '$', '=', '(', ')', '*', '\n'];
    text.contains(' ') && !text.contains(special)
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
        ] {
            assert!(is_prose(line), "{line}");
        }
        for line in [
            "tapegate.yaml",
            "Tapegate.yaml.",
            "cp x tapegate.yaml",
            "rm a, b, c, tapegate.yaml.",
            "X=1 cp a b c tapegate.yaml",
            "The end; rm tapegate.yaml now",
            "The text `rm tapegate.yaml` is run",
            "The text `rm",
            "Echo all of it > tapegate.yaml",
        ] {
            assert!(!is_prose(line), "{line}");
        }
    }

    #[test]
    fn a_query_is_words_or_a_statement() {
        assert!(is_plain_query("tapegate.yaml reference"));
        for query in
            ["tapegate.yaml", "COPY t TO 'tapegate.yaml'", "select * from x", "cat ./tapegate.yaml"]
        {
            assert!(!is_plain_query(query), "{query}");
        }
    }
}
