//! The location of a value in a message, as people write it.

use std::fmt;

use super::path::{ChildPosition, JsonPath};

/// The location of a value. Its text can be parsed as a [`JsonPath`], except for the outermost value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonLocation {
    /// The steps from the message inwards.
    pub steps: Vec<LocationStep>,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocationStep {
    /// To a member of an object.
    Key(String),
    /// To an element of an array.
    Index(usize),
}

impl JsonLocation {
    /// The location of a member of the message, such as `params` or `result`.
    pub fn member(name: &str) -> Self {
        Self { steps: vec![LocationStep::Key(name.to_owned())] }
    }

    /// Whether `path` leads to exactly this location.
    pub fn is_at(&self, path: &JsonPath) -> bool {
        let last = path.steps.len();
        // Which steps of the path may come next.
        let mut open = vec![false; last + 1];
        open[0] = true;
        for hop in &self.steps {
            let child = hop.child();
            for at in (0..=last).rev() {
                let stays = at < last && open[at] && path.steps[at].anywhere;
                let moved = at > 0 && open[at - 1] && path.steps[at - 1].select.matches(child);
                open[at] = stays || moved;
            }
        }
        open[last]
    }
}

impl LocationStep {
    fn child(&self) -> ChildPosition<'_> {
        match self {
            Self::Key(key) => ChildPosition::Key(key),
            Self::Index(index) => ChildPosition::Index(*index),
        }
    }
}

impl fmt::Display for JsonLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("$");
        }
        for (at, hop) in self.steps.iter().enumerate() {
            match hop {
                LocationStep::Index(index) => write!(f, "[{index}]")?,
                LocationStep::Key(key) if is_plain(key, at == 0) => {
                    f.write_str(if at == 0 { "" } else { "." })?;
                    f.write_str(key)?;
                }
                LocationStep::Key(key) => {
                    write!(f, "['{}']", key.replace('\\', "\\\\").replace('\'', "\\'"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a key needs no quotes in a path and usually none in a shell.
fn is_plain(key: &str, first: bool) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/' | ':');
    !key.is_empty() && key.chars().all(plain) && !(first && key.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(hops: &[Result<&str, usize>]) -> JsonLocation {
        let hop = |hop: &Result<&str, usize>| match hop {
            Ok(key) => LocationStep::Key((*key).to_owned()),
            Err(index) => LocationStep::Index(*index),
        };
        JsonLocation { steps: hops.iter().map(hop).collect() }
    }

    #[test]
    fn places_are_shown_as_paths_that_lead_there() {
        for (hops, shown) in [
            (&[Ok("params"), Ok("arguments"), Ok("path")][..], "params.arguments.path"),
            (&[Ok("result"), Ok("content"), Err(0), Ok("text")], "result.content[0].text"),
            (&[Ok("a.b"), Ok("it's"), Ok("x\\y")], r"['a.b']['it\'s']['x\\y']"),
            (&[Err(3), Ok(""), Ok("é"), Ok("*")], "[3][''].é['*']"),
            (&[Ok("-x"), Ok("io.model/version"), Ok("a\nb")], "['-x']['io.model/version']['a\nb']"),
        ] {
            let place = place(hops);
            assert_eq!(place.to_string(), shown);
            assert!(place.is_at(&JsonPath::read(shown).unwrap()), "{shown}");
        }
        assert_eq!(JsonLocation::default().to_string(), "$");
    }

    #[test]
    fn a_path_leads_to_a_place_as_its_steps_say() {
        let place = place(&[Ok("result"), Ok("content"), Err(1), Ok("text")]);
        for (path, leads) in [
            ("..text", true),
            ("result..text", true),
            ("result.content[*].text", true),
            ("result.content[1].*", true),
            ("result..*", true),
            ("..[1].text", true),
            ("..content..text", true),
            ("result.content[0].text", false),
            ("result.content", false),
            ("text", false),
            ("..content", false),
            ("..text.x", false),
            ("..params..text", false),
        ] {
            assert_eq!(place.is_at(&JsonPath::read(path).unwrap()), leads, "{path}");
        }
    }
}
