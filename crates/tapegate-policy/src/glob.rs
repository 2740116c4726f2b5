//! Globs as policies write them: `*`, `?`, `[a-z]`, `[!x]`; case counts.

/// A glob, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
}

impl Glob {
    /// Reads a glob, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned() })
    }

    /// Whether it matches a whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.text == "*" || self.text == name
    }

    /// The glob as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}
