//! Reads the arguments of a call. Whatever is wrong with them is said in a sentence that a model
//! can act on, and nothing is executed.

use serde_json::{Map, Value};
use tapegate_yaml::shape::nearest_name;

/// The arguments of a call.
pub(super) struct ToolArguments<'a> {
    values: Option<&'a Map<String, Value>>,
}

impl<'a> ToolArguments<'a> {
    /// Takes the arguments of a call; all of their names must be among `known`.
    pub(super) fn of(params: &'a Value, known: &[&str]) -> Result<Self, String> {
        let values = match params.get("arguments") {
            None | Some(Value::Null) => None,
            Some(Value::Object(values)) => Some(values),
            Some(_) => return Err("Invalid arguments: expected an object".to_owned()),
        };
        for name in values.into_iter().flatten().map(|(name, _)| name.as_str()) {
            // Refused, since ignoring `timeout_ms` would run a command under other conditions than
            // asked for.
            if !known.contains(&name) {
                let hint = match nearest_name(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are {}", known.join(", ")),
                };
                return Err(format!("Unknown argument: {name} ({hint})"));
            }
        }
        Ok(Self { values })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        // Some clients send null for what they leave out.
        self.values?.get(name).filter(|value| !value.is_null())
    }

    /// A text that must be there.
    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, String> {
        self.text(name)?.ok_or_else(|| format!("Missing required argument: {name}"))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("Invalid argument: {name} must be a string, not {other}")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => {
                Err(format!("Invalid argument: {name} must be true or false, not {other}"))
            }
        }
    }

    /// A whole number of at least `least`.
    pub(super) fn number(&self, name: &str, least: u64) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let whole = value.as_u64().or_else(|| {
            // JSON has one kind of number: 10.0 is 10.
            let number = value.as_f64()?;
            (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
        });
        match whole.filter(|number| *number >= least) {
            Some(number) => Ok(Some(number)),
            None => Err(format!(
                "Invalid argument: {name} must be a whole number of at least {least}, not {value}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_a_sentence() {
        let of = |arguments: Value| {
            let params = json!({"arguments": arguments});
            let known = ["command", "timeout", "working_directory"];
            let arguments = ToolArguments::of(&params, &known)?;
            let command = arguments.required_text("command")?.to_owned();
            Ok::<_, String>((command, arguments.number("timeout", 1)?))
        };
        assert_eq!(of(json!({"command": "ls", "timeout": 10.0})), Ok(("ls".to_owned(), Some(10))));
        assert_eq!(of(json!({"command": "ls", "timeout": null})), Ok(("ls".to_owned(), None)));
        for (arguments, message) in [
            (json!({}), "Missing required argument: command"),
            (Value::Null, "Missing required argument: command"),
            (json!([]), "Invalid arguments: expected an object"),
            (json!({"command": 7}), "Invalid argument: command must be a string, not 7"),
            (json!({"command": "ls", "timeout": -5}), "at least 1, not -5"),
            (json!({"command": "ls", "timeout": "10"}), "at least 1, not \"10\""),
            (json!({"command": "ls", "timeout": 0}), "at least 1, not 0"),
            (json!({"command": "ls", "timeout": 1.5}), "at least 1, not 1.5"),
            (json!({"comand": "ls"}), "Unknown argument: comand (did you mean `command`?)"),
            (json!({"command": "ls", "cwd": "/"}), "Unknown argument: cwd"),
        ] {
            let error = of(arguments).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
