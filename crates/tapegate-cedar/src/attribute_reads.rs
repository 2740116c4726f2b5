//! The parts of a call that a policy reads: arguments with their types, the time, and ids.
//!
//! Only arguments that some policy reads are converted to Cedar values. If a tool's definition is
//! not known, the way a policy uses an argument determines its type.

use std::collections::BTreeMap;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Policy, UnaryOp, Var};
use tapegate_core::lenient::folder::FolderPath;

use crate::attribute_tree::AttributeTree;
use crate::compared_values::ComparedPaths;
use crate::polarity::{FOLDERS, SplitConditions};
use crate::types::CedarType;

/// The parts of a call that are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttributeReads {
    pub(crate) arguments: AttributeTree,
    /// Whether all readings of them are.
    pub(crate) readings: bool,
    /// Whether they are read as `resource.arguments`.
    pub(crate) by_resource: bool,
    /// The folders that arguments are tested for, by path.
    pub(crate) folders: BTreeMap<Vec<String>, Vec<FolderPath>>,
    /// Whether `context.time` is.
    pub(crate) time: bool,
    /// Whether `context.policy_id` or `context.source_id` is.
    pub(crate) ids: bool,
}

impl AttributeReads {
    /// The parts that a policy reads.
    pub(crate) fn of(policy: &Policy) -> Self {
        let mut reads = Self::default();
        for clause in policy.body().clauses() {
            reads.clause(clause);
        }
        reads
    }

    /// Adds the parts that a clause reads.
    pub(crate) fn clause(&mut self, clause: &Clause) {
        let (Clause::When(expr) | Clause::Unless(expr)) = clause;
        self.walk(expr, Some(CedarType::Bool));
    }

    /// Adds the parts that another policy reads.
    pub(crate) fn add(&mut self, other: &Self) {
        self.arguments.add(&other.arguments);
        for (path, folders) in &other.folders {
            self.folders.entry(path.clone()).or_default().extend(folders.iter().cloned());
        }
        self.readings |= other.readings;
        self.by_resource |= other.by_resource;
        self.time |= other.time;
        self.ids |= other.ids;
    }

    /// Adds the folders and path patterns that a policy tests arguments for.
    pub(crate) fn add_split(&mut self, split: &SplitConditions) {
        self.readings |= split.reads_readings;
        for test in &split.folders {
            let known = self.folders.entry(test.path.clone()).or_default();
            known.extend(test.folders.iter().cloned());
            self.arguments.node_at(&test.path).folders.extend(test.folders.iter().cloned());
        }
        for pattern in &split.path_patterns {
            self.arguments.node_at(&pattern.path).path_pattern = true;
        }
    }

    /// Adds the values that tests which stop compare arguments with.
    pub(crate) fn add_compared(&mut self, all: &ComparedPaths) {
        for (path, wanted) in all {
            self.arguments.node_at(path).wanted.get_or_insert_default().add(wanted);
        }
    }

    /// Walks an expression that is used as type `want`.
    pub(crate) fn walk(&mut self, expr: &Expr, want: Option<CedarType>) {
        // Before the match: a path such as `context.arguments.a.b` is one read, not three.
        if self.path(expr, want.clone()) {
            return;
        }
        match expr {
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::BinaryOp { op, left, right } => self.binary(*op, left, right),
            Expr::GetAttr { expr, .. } | Expr::Is { expr, in_expr: None, .. } => {
                self.walk(expr, None);
            }
            Expr::HasAttr { expr, .. } => self.walk(expr, None),
            Expr::Is { expr, in_expr: Some(within), .. } => {
                self.walk(expr, None);
                self.walk(within, None);
            }
            Expr::Like { expr, .. } => self.walk(expr, Some(CedarType::String)),
            Expr::IfThenElse { cond, then_expr, else_expr } => {
                self.walk(cond, Some(CedarType::Bool));
                self.walk(then_expr, want.clone());
                self.walk(else_expr, want);
            }
            Expr::Set(elements) => {
                let of = match want {
                    Some(CedarType::Set(of)) => Some(*of),
                    _ => elements.iter().find_map(|element| type_of(element)),
                };
                elements.iter().for_each(|element| self.walk(element, of.clone()));
            }
            Expr::Record(members) => members.values().for_each(|value| self.walk(value, None)),
            _ => {}
        }
    }

    fn unary(&mut self, op: UnaryOp, expr: &Expr) {
        let want = match op {
            UnaryOp::Not => Some(CedarType::Bool),
            UnaryOp::Neg => Some(CedarType::Long),
            UnaryOp::IsEmpty => Some(CedarType::Set(Box::new(CedarType::Any))),
            _ => None,
        };
        self.walk(expr, want);
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        let set =
            |of: Option<CedarType>| Some(CedarType::Set(Box::new(of.unwrap_or(CedarType::Any))));
        let (left_want, right_want) = match op {
            // Each side of a comparison has the type of the other.
            BinaryOp::Eq | BinaryOp::NotEq => (type_of(right), type_of(left)),
            BinaryOp::And | BinaryOp::Or => (Some(CedarType::Bool), Some(CedarType::Bool)),
            BinaryOp::Less | BinaryOp::LessEq | BinaryOp::Greater | BinaryOp::GreaterEq => {
                // Dates and durations are compared this way too, but JSON has no such types.
                let long = !is_extension(left) && !is_extension(right);
                (long.then_some(CedarType::Long), long.then_some(CedarType::Long))
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                (Some(CedarType::Long), Some(CedarType::Long))
            }
            BinaryOp::Contains => match type_of(left) {
                Some(CedarType::Set(of)) => (set(type_of(right)), Some(*of)),
                _ => (set(type_of(right)), None),
            },
            BinaryOp::ContainsAll | BinaryOp::ContainsAny => {
                (type_of(right).or_else(|| set(None)), type_of(left).or_else(|| set(None)))
            }
            BinaryOp::DecimalLessThan
            | BinaryOp::DecimalLessEq
            | BinaryOp::DecimalGreater
            | BinaryOp::DecimalGreaterEq => (Some(CedarType::Decimal), Some(CedarType::Decimal)),
            _ => (None, None),
        };
        self.walk(left, left_want);
        self.walk(right, right_want);
    }

    /// Records the path if an expression starts at `context` or `resource.arguments`; else false.
    fn path(&mut self, expr: &Expr, want: Option<CedarType>) -> bool {
        let (expr, tested): (&Expr, Vec<&str>) = match expr {
            Expr::HasAttr { expr, attrs } => (expr, attrs.iter().map(|name| &**name).collect()),
            _ => (expr, Vec::new()),
        };
        let Some((root, mut names)) = chain(expr) else { return false };
        // `has` says nothing about the type of the member.
        let want = if tested.is_empty() { want } else { None };
        names.extend(tested);
        match (root, &names[..]) {
            (Var::Context, []) => {
                // `context` as a value, as in `context == …`, reads everything in it.
                self.arguments.whole = true;
                self.time = true;
                self.ids = true;
            }
            (Var::Context, ["arguments", path @ ..]) => self.arguments.note(path, want),
            (Var::Context, [FOLDERS, path @ ..]) => self.arguments.note(path, None),
            (Var::Context, ["time", ..]) => self.time = true,
            (Var::Resource, ["arguments", path @ ..]) => {
                self.by_resource = true;
                self.arguments.note(path, want);
            }
            (Var::Context, _) => self.ids = true,
            _ => return false,
        }
        true
    }
}

/// Splits `a.b.c` into the variable `a` and the names after it.
pub(crate) fn chain(expr: &Expr) -> Option<(&Var, Vec<&str>)> {
    match expr {
        Expr::Var(var) => Some((var, Vec::new())),
        Expr::GetAttr { expr, attr } => {
            let (var, mut names) = chain(expr)?;
            names.push(attr);
            Some((var, names))
        }
        _ => None,
    }
}

/// The type of an expression, if it is evident without a schema.
fn type_of(expr: &Expr) -> Option<CedarType> {
    match expr {
        Expr::Literal(Literal::Bool(_)) => Some(CedarType::Bool),
        Expr::Literal(Literal::Long(_)) => Some(CedarType::Long),
        Expr::Literal(Literal::String(_)) => Some(CedarType::String),
        Expr::Set(elements) => {
            let of = elements.iter().find_map(|element| type_of(element)).unwrap_or(CedarType::Any);
            Some(CedarType::Set(Box::new(of)))
        }
        Expr::UnaryOp { op, .. } => match op {
            UnaryOp::Decimal => Some(CedarType::Decimal),
            UnaryOp::Neg => Some(CedarType::Long),
            UnaryOp::Not | UnaryOp::IsEmpty => Some(CedarType::Bool),
            _ => None,
        },
        Expr::BinaryOp { op, .. } => match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => Some(CedarType::Long),
            BinaryOp::Offset | BinaryOp::DurationSince | BinaryOp::GetTag => None,
            _ => Some(CedarType::Bool),
        },
        Expr::Like { .. } | Expr::Is { .. } | Expr::HasAttr { .. } => Some(CedarType::Bool),
        Expr::IfThenElse { then_expr, else_expr, .. } => {
            type_of(then_expr).or_else(|| type_of(else_expr))
        }
        Expr::GetAttr { .. } => match chain(expr)? {
            (Var::Context, names) => match names[..] {
                ["time", ..] => Some(CedarType::Long),
                ["policy_id" | "source_id"] => Some(CedarType::String),
                _ => None,
            },
            (Var::Principal, _) => Some(CedarType::String),
            (Var::Resource, names) => {
                (names[..] != ["arguments"] && names.len() == 1).then_some(CedarType::String)
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_extension(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::UnaryOp {
            op: UnaryOp::Datetime | UnaryOp::Duration | UnaryOp::ToDate | UnaryOp::ToTime,
            ..
        } | Expr::BinaryOp { op: BinaryOp::Offset | BinaryOp::DurationSince, .. }
    )
}
