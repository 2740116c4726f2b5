//! Collects wrong settings of a shim, so that the client is told all of them at once.

use crate::exit::{Exit, Failure};

/// What is wrong with the environment and the command line.
#[derive(Debug, Default)]
pub(super) struct SettingsFaults(Vec<Failure>);

impl SettingsFaults {
    /// The setting or, if it is wrong, a fallback to use until the client has been told.
    pub(super) fn unwrap_or<T>(&mut self, setting: Result<T, Failure>, fallback: T) -> T {
        setting.unwrap_or_else(|failure| {
            self.0.push(failure);
            fallback
        })
    }

    /// All faults as one reason why the session cannot start.
    pub(super) fn into_failure(mut self) -> Option<Failure> {
        if self.0.len() < 2 {
            return self.0.pop();
        }
        let line = |failure: &Failure| match &failure.hint {
            Some(hint) => format!("{} ({hint})", failure.message),
            None => failure.message.clone(),
        };
        let lines: Vec<String> = self.0.iter().map(line).collect();
        let message = format!("{}\n{} settings are wrong", lines.join("\n"), lines.len());
        Some(Failure::new(Exit::Usage, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_keeps_its_hint_and_several_are_told_together() {
        let wrong = |message: &str| -> Result<u8, Failure> {
            Err(Failure::new(Exit::Usage, message).hint("do this"))
        };
        let mut faults = SettingsFaults::default();
        assert_eq!(faults.unwrap_or(Ok(1), 2), 1);
        assert!(SettingsFaults::default().into_failure().is_none());
        assert_eq!(faults.unwrap_or(wrong("a"), 2), 2);
        let first = SettingsFaults(vec![wrong("a").unwrap_err()]).into_failure().unwrap();
        assert_eq!((first.message.as_str(), first.hint.as_deref()), ("a", Some("do this")));
        faults.unwrap_or(wrong("b"), 0);
        let all = faults.into_failure().unwrap();
        assert_eq!(all.message, "a (do this)\nb (do this)\n2 settings are wrong");
    }
}
