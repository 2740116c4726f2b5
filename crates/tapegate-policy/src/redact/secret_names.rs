//! Names that indicate that their value is a secret.

/// Words that indicate a secret anywhere in a name.
const STRONG: [&str; 7] =
    ["token", "secret", "password", "passwd", "passphrase", "apikey", "credentials"];
/// Words that indicate a secret at the end of a name.
const LAST: [&str; 11] = [
    "key",
    "auth",
    "authorization",
    "sig",
    "signature",
    "credential",
    "jwt",
    "bearer",
    "cookie",
    "pwd",
    "pat",
];
/// Words that indicate a secret only as the whole name; `exit_code` is not a secret.
const ALONE: [&str; 4] = ["code", "pass", "pw", "sas"];
/// Final words of names that describe a secret but do not hold it.
const ABOUT: [&str; 10] =
    ["file", "path", "dir", "type", "name", "id", "url", "uri", "limit", "count"];

/// Whether a parameter, variable, flag or header with this name holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let words = split_words(name);
    let Some(last) = words.last() else { return false };
    let joined = words.concat();
    if ALONE.contains(&joined.as_str()) {
        return true;
    }
    let strong = |word: &String| STRONG.contains(&word.as_str());
    let ends = STRONG.iter().any(|word| joined.ends_with(word)) || LAST.contains(&last.as_str());
    ends || (words.iter().any(strong) && !ABOUT.contains(&last.as_str()))
}

/// The words of a name in lower case, the same for `X-Api-Key`, `apiKey` and `API_KEY`.
fn split_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            let begins = !before.is_ascii_alphanumeric()
                || (letter.is_ascii_uppercase() && before.is_ascii_lowercase());
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(letter.to_ascii_lowercase());
            }
        }
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_name() {
        for name in [
            "token",
            "--api-key",
            "API_KEY",
            "apiKey",
            "apikey",
            "X-Api-Key",
            "access_token",
            "sig",
            "Signature",
            "AUTHORIZATION",
            "auth",
            "client_secret",
            "DB_PASSWORD_PROD",
            "code",
            "accessToken",
            "key",
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "githubtoken",
            "x-amz-signature",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "",
            "monkey",
            "exit_code",
            "author",
            "max_tokens",
            "token-file",
            "keyboard",
            "design",
            "SECRET_NAME",
            "path",
            "compass",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
