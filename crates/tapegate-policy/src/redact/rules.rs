//! What a user wants masked, parsed from the command line or from a tape's header.

use super::pattern_search::{ENTROPY, SecretPatterns};
use super::secret_patterns::PATTERNS;
use tapegate_core::json::path::{JsonPath, PathFault, StepSelector};

/// The name for all built-in patterns together.
const SECRETS: &str = "secrets";
/// Words that are valid paths although they are not names of patterns.
const ROOTS: [&str; 3] = ["params", "result", "error"];

/// What is to be masked.
#[derive(Debug, Clone, Default)]
pub struct RedactionRules {
    texts: Vec<String>,
    pub(super) paths: Vec<JsonPath>,
    pub(super) patterns: SecretPatterns,
}

/// Why a rule cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("redaction rule `{rule}`: {what} at character {at}")]
pub struct RuleError {
    /// The rule as it was given.
    pub rule: String,
    /// The position of the fault in characters, from 1.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

impl RuleError {
    /// A hint about valid rules.
    pub fn hint(&self) -> String {
        let names = RedactionRules::pattern_names().join(", ");
        format!(
            "a rule is a path such as `$.params.arguments.password`, `result.content[*].text`, \
             `..token` or `params['odd.key']`; `{SECRETS}` for all built-in patterns, or one of \
             them: {names}; or `{ENTROPY}` for random-looking text"
        )
    }
}

impl RedactionRules {
    /// Parses rules. Each text may contain several, separated by commas.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, RuleError> {
        let mut kept: Vec<String> = Vec::new();
        for text in texts {
            for rule in split(text.as_ref()) {
                let rule = rule.trim();
                if !kept.iter().any(|known| known == rule) {
                    kept.push(rule.to_owned());
                }
            }
        }
        let mut paths = Vec::new();
        for rule in kept.iter().filter(|rule| !is_name(rule)) {
            paths.push(read_path(rule)?);
        }
        let has = |name: &str| kept.iter().any(|rule| rule == name);
        let all = has(SECRETS);
        let patterns = SecretPatterns::select(|name| all || has(name), has(ENTROPY));
        Ok(Self { texts: kept, paths, patterns })
    }

    /// These rules without those in `known`.
    pub(super) fn without_known(&self, known: &[Self]) -> Self {
        let is_new = |text: &&String| known.iter().all(|rules| !rules.texts.contains(text));
        // Every text was parsed before, so this cannot fail.
        Self::parse(self.texts.iter().filter(is_new)).unwrap_or_default()
    }

    /// The rules as given, without duplicates.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether there is a path that matches nothing in any message.
    pub(crate) fn misses_messages(&self) -> bool {
        self.paths.iter().any(|path| {
            let first = path.steps.first().filter(|step| !step.anywhere);
            let key = first.map(|step| &step.select);
            matches!(key, Some(StepSelector::Key(key)) if !ROOTS.contains(&key.as_str()))
        })
    }

    /// The names of the built-in patterns.
    fn pattern_names() -> Vec<&'static str> {
        let mut names: Vec<_> = PATTERNS.iter().map(|shape| shape.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Splits `text` at the commas that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut quote, mut escape) = (0_u32, None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escape => escape = false,
            (Some(_), '\\') => escape = true,
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, '\'' | '"') if depth > 0 => quote = Some(letter),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn is_name(rule: &str) -> bool {
    rule == SECRETS || rule == ENTROPY || PATTERNS.iter().any(|shape| shape.name == rule)
}

fn read_path(rule: &str) -> Result<JsonPath, RuleError> {
    let fail = |at, what| RuleError { rule: rule.to_owned(), at, what };
    if rule.is_empty() {
        return Err(fail(1, "the rule is empty".to_owned()));
    }
    let word = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    // A misspelt pattern name would otherwise be a path that matches nothing, and mask nothing.
    if rule.chars().all(word) && !ROOTS.contains(&rule) {
        let what = format!(
            "no built-in pattern has this name (to mask every key `{rule}`, write `..{rule}`)"
        );
        return Err(fail(1, what));
    }
    JsonPath::read(rule).map_err(|PathFault { at, what }| fail(at + 1, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(given: &[&str]) -> Vec<String> {
        RedactionRules::parse(given).unwrap().texts().to_vec()
    }

    #[test]
    fn rules_may_be_repeated_or_separated_by_commas() {
        assert_eq!(
            texts(&["aws, github", "$.params['a,b\\']'],..c", "aws"]),
            ["aws", "github", "$.params['a,b\\']']", "..c"]
        );
        assert!(RedactionRules::parse([""; 0]).unwrap().is_empty());
    }

    #[test]
    fn patterns_are_chosen_by_name() {
        let chosen = |text| format!("{:?}", RedactionRules::parse([text]).unwrap().patterns);
        assert_eq!(chosen("github"), r#"["github"]"#);
        assert_eq!(chosen("entropy"), r#"["entropy"]"#);
        assert_eq!(chosen("..a"), "[]");
        assert_eq!(chosen("secrets,aws").matches("aws").count(), 2);
    }

    #[test]
    fn a_bad_rule_is_named_with_the_place_and_what_is_accepted() {
        let error = RedactionRules::parse(["aws,params..[x]"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "redaction rule `params..[x]`: `*`, a number or a quoted key is missing at character 10"
        );
        assert!(error.hint().contains("`..token`") && error.hint().contains("github, gitlab"));
        let error = RedactionRules::parse(["password"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "redaction rule `password`: no built-in pattern has this name (to mask every key \
             `password`, write `..password`) at character 1"
        );
        assert_eq!(RedactionRules::parse(["aws,,"]).unwrap_err().what, "the rule is empty");
    }

    #[test]
    fn known_rules_can_be_left_out() {
        let known =
            [RedactionRules::parse(["aws,..a"]).unwrap(), RedactionRules::parse(["..c"]).unwrap()];
        let new = RedactionRules::parse(["..c,..b,aws,github"]).unwrap().without_known(&known);
        assert_eq!(new.texts(), ["..b", "github"]);
    }
}
