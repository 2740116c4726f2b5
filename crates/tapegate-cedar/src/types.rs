//! The types that arguments have for Cedar, and how several of them become one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A type of Cedar, as far as JSON has values of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    /// Nobody said. A value is taken as what it looks like.
    Any,
    String,
    Long,
    Bool,
    Decimal,
    Set(Box<Type>),
    Record(Record),
}

/// What an object holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) members: BTreeMap<String, Member>,
    /// Members that have no type here, and why not.
    pub(crate) left_out: BTreeMap<String, String>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) kind: Type,
    pub(crate) required: bool,
}

/// Something that is taken for two different things.
#[derive(Debug)]
pub(crate) struct Clash {
    pub(crate) path: Vec<String>,
    pub(crate) one: String,
    pub(crate) two: String,
}

impl Clash {
    /// The same, seen from the object that holds it.
    pub(crate) fn within(mut self, name: &str) -> Self {
        self.path.insert(0, name.to_owned());
        self
    }
}

impl Type {
    /// What it is called in Cedar.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Any => "anything".to_owned(),
            Self::String => "String".to_owned(),
            Self::Long => "Long".to_owned(),
            Self::Bool => "Bool".to_owned(),
            Self::Decimal => "decimal".to_owned(),
            Self::Set(of) => format!("Set<{}>", of.name()),
            Self::Record(_) => "a record".to_owned(),
        }
    }

    /// What it holds, if it is a record.
    pub(crate) fn record(&self) -> Option<&Record> {
        if let Self::Record(record) = self { Some(record) } else { None }
    }

    /// The one type that both uses of a value agree on.
    pub(crate) fn unify(self, other: Self) -> Result<Self, Clash> {
        match (self, other) {
            (Self::Any, known) | (known, Self::Any) => Ok(known),
            (Self::Set(one), Self::Set(two)) => Ok(Self::Set(Box::new(one.unify(*two)?))),
            (Self::Record(mut one), Self::Record(two)) => {
                for (name, member) in two.members {
                    one.add(name, member.kind)?;
                }
                Ok(Self::Record(one))
            }
            (one, two) if one == two => Ok(one),
            (one, two) => Err(Clash { path: Vec::new(), one: one.name(), two: two.name() }),
        }
    }

    /// As a schema of Cedar writes it.
    pub(crate) fn to_schema(&self) -> Value {
        match self {
            Self::Any | Self::String => json!({ "type": "String" }),
            Self::Long => json!({ "type": "Long" }),
            Self::Bool => json!({ "type": "Boolean" }),
            Self::Decimal => json!({ "type": "Extension", "name": "decimal" }),
            Self::Set(of) => json!({ "type": "Set", "element": of.to_schema() }),
            Self::Record(record) => record.to_schema(),
        }
    }
}

impl Record {
    /// Adds an optional member, or narrows the one there is.
    pub(crate) fn add(&mut self, name: String, kind: Type) -> Result<(), Clash> {
        let kind = match self.members.remove(&name) {
            Some(known) => known.kind.unify(kind).map_err(|clash| clash.within(&name))?,
            None => kind,
        };
        self.members.insert(name, Member { kind, required: false });
        Ok(())
    }

    /// What all of these have in common: a member that one of them lacks is optional, and one that
    /// has not the same type everywhere is left out. Each comes with a name for people.
    pub(crate) fn common<'a>(all: impl IntoIterator<Item = (String, &'a Self)>) -> Self {
        let mut all = all.into_iter();
        let Some((first_name, first)) = all.next() else { return Self::default() };
        let mut common = first.clone();
        let mut owner: BTreeMap<String, String> =
            common.members.keys().map(|name| (name.clone(), first_name.clone())).collect();
        for (other_name, other) in all {
            common.meet(&mut owner, &other_name, other);
        }
        common
    }

    fn meet(&mut self, owner: &mut BTreeMap<String, String>, other_name: &str, other: &Self) {
        for (name, member) in &mut self.members {
            member.required &= other.members.get(name).is_some_and(|other| other.required);
        }
        for (name, why) in &other.left_out {
            self.members.remove(name);
            self.left_out.entry(name.clone()).or_insert_with(|| why.clone());
        }
        for (name, member) in &other.members {
            if self.left_out.contains_key(name) {
                continue;
            }
            let Some(known) = self.members.get_mut(name) else {
                let optional = Member { kind: member.kind.clone(), required: false };
                self.members.insert(name.clone(), optional);
                owner.insert(name.clone(), other_name.to_owned());
                continue;
            };
            match (&known.kind, &member.kind) {
                (Type::Record(one), Type::Record(two)) => {
                    let whose = owner.get(name).cloned().unwrap_or_default();
                    let both = [(whose, one), (other_name.to_owned(), two)];
                    known.kind = Type::Record(Self::common(both));
                }
                (one, two) if one == two => {}
                (one, two) => {
                    let whose = owner.get(name).map_or("another", String::as_str);
                    let why = format!(
                        "it is {} in {whose} but {} in {other_name}",
                        one.name(),
                        two.name()
                    );
                    self.left_out.insert(name.clone(), why);
                    self.members.remove(name);
                }
            }
        }
    }

    /// As a schema of Cedar writes it.
    pub(crate) fn to_schema(&self) -> Value {
        let members = self.members.iter().map(|(name, member)| {
            let mut kind = member.kind.to_schema();
            if !member.required {
                kind["required"] = Value::Bool(false);
            }
            (name.clone(), kind)
        });
        json!({ "type": "Record", "attributes": Value::Object(members.collect()) })
    }

    /// The type of what is at a path, if it is known.
    pub(crate) fn kind_at(&self, path: &[String]) -> Option<&Type> {
        let [name, rest @ ..] = path else { return None };
        match (&self.members.get(name)?.kind, rest) {
            (kind, []) => Some(kind),
            (Type::Record(record), rest) => record.kind_at(rest),
            _ => None,
        }
    }

    /// Adds a member that is always there, and the records on the way to it.
    pub(crate) fn require(&mut self, path: &[String], kind: Type) {
        let [name, rest @ ..] = path else { return };
        if rest.is_empty() {
            self.members.insert(name.clone(), Member { kind, required: true });
            return;
        }
        let empty = || Member { kind: Type::Record(Self::default()), required: true };
        if let Type::Record(record) =
            &mut self.members.entry(name.clone()).or_insert_with(empty).kind
        {
            record.require(rest, kind);
        }
    }

    /// Why the member at a path has no type, if it was left out.
    pub(crate) fn why_left_out(&self, path: &[&str]) -> Option<&str> {
        let [name, rest @ ..] = path else { return None };
        if let Some(why) = self.left_out.get(*name) {
            return Some(why);
        }
        match &self.members.get(*name)?.kind {
            Type::Record(record) => record.why_left_out(rest),
            _ => None,
        }
    }
}
