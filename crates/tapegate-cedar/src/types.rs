//! Cedar types of arguments, and how they are combined.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A Cedar type that JSON values can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CedarType {
    /// Not declared; the type follows from the value.
    Any,
    String,
    Long,
    Bool,
    Decimal,
    Set(Box<CedarType>),
    Record(RecordType),
}

/// The members of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordType {
    pub(crate) members: BTreeMap<String, RecordMember>,
    /// Members without a type, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordMember {
    pub(crate) kind: CedarType,
    pub(crate) required: bool,
}

/// A value that is used as two different types.
#[derive(Debug)]
pub(crate) struct TypeClash {
    pub(crate) path: Vec<String>,
    pub(crate) one: String,
    pub(crate) two: String,
}

impl TypeClash {
    /// The clash as seen from the containing object.
    pub(crate) fn nested_in(mut self, name: &str) -> Self {
        self.path.insert(0, name.to_owned());
        self
    }
}

impl CedarType {
    /// The name of the type in Cedar.
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

    /// The record, if it is one.
    pub(crate) fn record(&self) -> Option<&RecordType> {
        if let Self::Record(record) = self { Some(record) } else { None }
    }

    /// The single type that both uses of a value agree on.
    pub(crate) fn unify(self, other: Self) -> Result<Self, TypeClash> {
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
            (one, two) => Err(TypeClash { path: Vec::new(), one: one.name(), two: two.name() }),
        }
    }

    /// The type in Cedar's schema format.
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

impl RecordType {
    /// Adds an optional member, or narrows the existing one.
    pub(crate) fn add(&mut self, name: String, kind: CedarType) -> Result<(), TypeClash> {
        let kind = match self.members.remove(&name) {
            Some(known) => known.kind.unify(kind).map_err(|clash| clash.nested_in(&name))?,
            None => kind,
        };
        self.members.insert(name, RecordMember { kind, required: false });
        Ok(())
    }

    /// The members that all records have in common: one that some record lacks is optional, and one
    /// whose types differ is left out. Each record comes with a name for messages.
    pub(crate) fn common<'a>(all: impl IntoIterator<Item = (String, &'a Self)>) -> Self {
        let mut all = all.into_iter();
        let Some((first_name, first)) = all.next() else { return Self::default() };
        let mut common = first.clone();
        let mut owner: BTreeMap<String, String> =
            common.members.keys().map(|name| (name.clone(), first_name.clone())).collect();
        for (other_name, other) in all {
            common.intersect(&mut owner, &other_name, other);
        }
        common
    }

    fn intersect(&mut self, owner: &mut BTreeMap<String, String>, other_name: &str, other: &Self) {
        for (name, member) in &mut self.members {
            member.required &= other.members.get(name).is_some_and(|other| other.required);
        }
        // Left out of one tool means left out of all: no type fits every call.
        for (name, reason) in &other.left_out {
            self.members.remove(name);
            self.left_out.entry(name.clone()).or_insert_with(|| reason.clone());
        }
        for (name, member) in &other.members {
            if self.left_out.contains_key(name) {
                continue;
            }
            // Kept, but optional: the policy must test for it with `has`.
            let Some(known) = self.members.get_mut(name) else {
                let optional = RecordMember { kind: member.kind.clone(), required: false };
                self.members.insert(name.clone(), optional);
                owner.insert(name.clone(), other_name.to_owned());
                continue;
            };
            match (&known.kind, &member.kind) {
                (CedarType::Record(one), CedarType::Record(two)) => {
                    let whose = owner.get(name).cloned().unwrap_or_default();
                    let both = [(whose, one), (other_name.to_owned(), two)];
                    known.kind = CedarType::Record(Self::common(both));
                }
                (one, two) if one == two => {}
                (one, two) => {
                    let whose = owner.get(name).map_or("another", String::as_str);
                    let reason = format!(
                        "it is {} in {whose} but {} in {other_name}",
                        one.name(),
                        two.name()
                    );
                    self.left_out.insert(name.clone(), reason);
                    self.members.remove(name);
                }
            }
        }
    }

    /// The record in Cedar's schema format.
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

    /// The type at a path, if it is known.
    pub(crate) fn kind_at(&self, path: &[String]) -> Option<&CedarType> {
        let [name, rest @ ..] = path else { return None };
        match (&self.members.get(name)?.kind, rest) {
            (kind, []) => Some(kind),
            (CedarType::Record(record), rest) => record.kind_at(rest),
            _ => None,
        }
    }

    /// Adds a required member, and the records on its path.
    pub(crate) fn require(&mut self, path: &[String], kind: CedarType) {
        let [name, rest @ ..] = path else { return };
        if rest.is_empty() {
            self.members.insert(name.clone(), RecordMember { kind, required: true });
            return;
        }
        let empty = || RecordMember { kind: CedarType::Record(Self::default()), required: true };
        if let CedarType::Record(record) =
            &mut self.members.entry(name.clone()).or_insert_with(empty).kind
        {
            record.require(rest, kind);
        }
    }

    /// Why the member at a path was left out, if it was.
    pub(crate) fn why_left_out(&self, path: &[&str]) -> Option<&str> {
        let [name, rest @ ..] = path else { return None };
        if let Some(reason) = self.left_out.get(*name) {
            return Some(reason);
        }
        match &self.members.get(*name)?.kind {
            CedarType::Record(record) => record.why_left_out(rest),
            _ => None,
        }
    }
}
