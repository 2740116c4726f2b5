//! Parses the expressions between `${` and `}`.

use super::access_path::AccessStep;
use super::functions::{FUNCTIONS, TemplateFunction};
use crate::model::ItemKind;

/// An expression between `${` and `}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TemplateExpression {
    /// A quoted text, or a number.
    Text(String),
    Variable(TemplateVariable),
    /// A function and its arguments.
    Call(TemplateFunction, Vec<TemplateExpression>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateVariable {
    /// A value in the arguments of the request.
    Arguments(Vec<AccessStep>),
    /// A value in the params of the request.
    Params(Vec<AccessStep>),
    /// A variable of the URI template.
    Uri(String),
    /// A value in a reply from the client.
    Reply(String, Vec<AccessStep>),
    /// A member of the item's definition.
    Item(ItemKind, String),
    /// How often the item was used.
    CallCount(ItemKind),
    PhaseName,
    /// The number of the phase.
    PhaseIndex,
    RequestId,
    RequestMethod,
    /// The number of the client.
    Connection,
    /// An environment variable.
    Env(String),
    /// An unknown variable.
    Unknown,
}

/// The names that a variable may start with.
pub(crate) const ROOTS: [&str; 12] = [
    "args",
    "arguments",
    "params",
    "tool",
    "resource",
    "prompt",
    "phase",
    "request",
    "connection",
    "env",
    "reply",
    "uri",
];

/// How deeply function calls may be nested.
const DEPTH_MAX: usize = 16;

/// Parses an expression up to `}`; returns it and its length including the brace.
pub(super) fn read(text: &str) -> Result<(TemplateExpression, usize), String> {
    let mut scan = ExpressionScanner { text, at: 0 };
    let expression = scan.expression(0)?;
    scan.space();
    match scan.take_if('}') {
        true => Ok((expression, scan.at)),
        false => Err(format!("unexpected `{}`", scan.rest().chars().next().unwrap_or('$'))),
    }
}

struct ExpressionScanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ExpressionScanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take_if(&mut self, letter: char) -> bool {
        let taken = self.rest().starts_with(letter);
        self.at += if taken { letter.len_utf8() } else { 0 };
        taken
    }

    fn expression(&mut self, depth: usize) -> Result<TemplateExpression, String> {
        self.space();
        let first = self.rest().chars().next();
        match first {
            // The parser recurses, and scenarios may come from others.
            _ if depth > DEPTH_MAX => Err("functions are nested too deeply".to_owned()),
            Some(quote @ ('"' | '\'')) => self.quoted(quote).map(TemplateExpression::Text),
            Some('0'..='9' | '-') => Ok(TemplateExpression::Text(
                self.take_until(|letter| matches!(letter, ',' | ')' | '}' | ' ')).to_owned(),
            )),
            _ if self.rest().starts_with("fn.") => self.call(depth),
            _ => {
                let path = self.path()?;
                Ok(TemplateExpression::Variable(TemplateVariable::from_steps(path)))
            }
        }
    }

    fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.at += 1;
        let mut text = String::new();
        while let Some(letter) = self.rest().chars().next() {
            self.at += letter.len_utf8();
            match letter {
                _ if letter == quote => return Ok(text),
                '\\' => {
                    let Some(taken) = self.rest().chars().next() else { break };
                    self.at += taken.len_utf8();
                    text.push(match taken {
                        'n' => '\n',
                        't' => '\t',
                        taken => taken,
                    });
                }
                letter => text.push(letter),
            }
        }
        Err("a quote is not closed".to_owned())
    }

    fn call(&mut self, depth: usize) -> Result<TemplateExpression, String> {
        self.at += "fn.".len();
        let name = self.take_until(|letter| !letter.is_ascii_alphanumeric() && letter != '_');
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|known| known.0 == name)
        else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|known| known.0).collect();
            return Err(format!("unknown function `fn.{name}`; known: {}", known.join(", ")));
        };
        let mut arguments = Vec::new();
        if self.take_if('(') {
            self.space();
            while !self.take_if(')') {
                if !arguments.is_empty() && !self.take_if(',') {
                    return Err(format!("`fn.{name}` has no closing `)`"));
                }
                arguments.push(self.expression(depth + 1)?);
                self.space();
            }
        }
        match (*least..=*most).contains(&arguments.len()) {
            true => Ok(TemplateExpression::Call(*function, arguments)),
            false => Err(format!("`fn.{name}` has {} arguments, not {least}", arguments.len())),
        }
    }

    /// Parses a path: `a.b[0]['c d']`.
    fn path(&mut self) -> Result<Vec<AccessStep>, String> {
        let mut steps = Vec::new();
        loop {
            if self.take_if('[') {
                steps.push(self.bracket()?);
            } else {
                let name = self
                    .take_until(|letter| matches!(letter, '.' | '[' | '}' | ',' | ')' | '(' | ' '));
                if name.is_empty() {
                    return Err("a name is missing".to_owned());
                }
                steps.push(AccessStep::Key(name.to_owned()));
            }
            let bracket = self.rest().starts_with('[');
            if !self.take_if('.') && !bracket {
                return Ok(steps);
            }
        }
    }

    fn bracket(&mut self) -> Result<AccessStep, String> {
        let step = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => AccessStep::Key(self.quoted(quote)?),
            _ => {
                // Not beyond the brace, so that the error names this expression only.
                let digits = self.take_until(|letter| matches!(letter, ']' | '}'));
                let index = digits.trim().parse();
                AccessStep::Index(index.map_err(|_| format!("`{digits}` is not a list index"))?)
            }
        };
        match self.take_if(']') {
            true => Ok(step),
            false => Err("a `]` is missing".to_owned()),
        }
    }
}

/// Parses a path on its own: `args.list[0]`.
pub(crate) fn path(text: &str) -> Result<Vec<AccessStep>, String> {
    let mut scan = ExpressionScanner { text, at: 0 };
    let steps = scan.path()?;
    match scan.rest() {
        "" => Ok(steps),
        rest => Err(format!("unexpected `{rest}`")),
    }
}

impl TemplateVariable {
    /// The variable that a path names.
    pub(crate) fn from_steps(steps: Vec<AccessStep>) -> Self {
        let mut steps = steps.into_iter();
        let Some(AccessStep::Key(root)) = steps.next() else { return Self::Unknown };
        let rest: Vec<AccessStep> = steps.collect();
        let field = match &rest[..] {
            [AccessStep::Key(field)] => Some(field.as_str()),
            _ => None,
        };
        match (root.as_str(), field) {
            ("args" | "arguments", _) => Self::Arguments(rest),
            ("params", _) => Self::Params(rest),
            ("reply", _) => match rest.split_first() {
                Some((AccessStep::Key(name), rest)) => Self::Reply(name.clone(), rest.to_vec()),
                _ => Self::Unknown,
            },
            ("uri", Some(name)) => Self::Uri(name.to_owned()),
            ("env", Some(name)) => Self::Env(name.to_owned()),
            ("tool", Some(field)) => Self::of_item(ItemKind::Tool, field),
            ("resource", Some(field)) => Self::of_item(ItemKind::Resource, field),
            ("prompt", Some(field)) => Self::of_item(ItemKind::Prompt, field),
            ("phase", Some("name")) => Self::PhaseName,
            ("phase", Some("index")) => Self::PhaseIndex,
            ("request", Some("id")) => Self::RequestId,
            ("request", Some("method")) => Self::RequestMethod,
            ("connection", Some("id")) => Self::Connection,
            _ => Self::Unknown,
        }
    }

    fn of_item(kind: ItemKind, field: &str) -> Self {
        match field {
            "call_count" => Self::CallCount(kind),
            field => Self::Item(kind, field.to_owned()),
        }
    }
}
