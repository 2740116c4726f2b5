//! Decides which reading of an argument each test in a policy uses.
//!
//! A test that helps to stop a call counts if any server could read the arguments that way; one
//! that helps to let it pass counts only as written. In a `forbid` a test stops, and after `!`,
//! `!=` or `unless` it lets pass; in a `permit` it is the other way round. Tests that stop are
//! rewritten to read `context.readings` and `context.possible_folders`, which cover all readings,
//! in place of `context.arguments` and `context.folders`.

use std::sync::Arc;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Template, UnaryOp, Var};
use tapegate_core::lenient::folder::FolderPath;

use crate::attribute_reads::chain;

/// The arguments in one of their readings, for tests that stop.
pub(crate) const READINGS: &str = "readings";
/// The folders that certainly contain an argument.
pub(crate) const FOLDERS: &str = "folders";
/// The folders that may contain an argument, for tests that stop.
pub(crate) const POSSIBLE_FOLDERS: &str = "possible_folders";

/// How deeply conditions of `if` may be nested: each one is duplicated, once per branch.
const CONDITIONS_MAX: usize = 6;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TestPurpose {
    #[default]
    Stop,
    Pass,
}

/// A folder test: the argument, and the folders it is tested for.
#[derive(Debug)]
pub(crate) struct FolderTest {
    pub(crate) path: Vec<String>,
    pub(crate) folders: Vec<FolderPath>,
}

/// A test of an argument against a path pattern.
#[derive(Debug)]
pub(crate) struct PathPattern {
    pub(crate) path: Vec<String>,
    /// The pattern, with a star for each wildcard.
    pub(crate) text: String,
}

/// The conditions of a policy, split by the purpose of each test.
#[derive(Debug)]
pub(crate) struct SplitConditions {
    pub(crate) clauses: Vec<Clause>,
    pub(crate) folders: Vec<FolderTest>,
    /// Whether some test stops, and so needs all readings.
    pub(crate) reads_readings: bool,
    /// Arguments that must match a path pattern for a call to pass.
    pub(crate) path_patterns: Vec<PathPattern>,
}

/// Splits the conditions of a policy with this aim; on failure, the error message.
pub(crate) fn split(body: &Template, aim: TestPurpose) -> Result<SplitConditions, String> {
    let mut splitter = ConditionSplitter { aim, ..ConditionSplitter::default() };
    let mut clauses = Vec::new();
    for clause in body.clauses() {
        clauses.push(match clause {
            Clause::When(expr) => Clause::When(splitter.split_expression(expr, aim)?),
            Clause::Unless(expr) => Clause::Unless(splitter.split_expression(expr, aim.other())?),
        });
    }
    let ConditionSplitter { folders, path_patterns, reads_readings, .. } = splitter;
    Ok(SplitConditions { clauses, folders, reads_readings, path_patterns })
}

#[derive(Default)]
struct ConditionSplitter {
    /// The purpose of the policy as a whole.
    aim: TestPurpose,
    folders: Vec<FolderTest>,
    path_patterns: Vec<PathPattern>,
    reads_readings: bool,
    nested: usize,
}

impl TestPurpose {
    fn other(self) -> Self {
        match self {
            Self::Stop => Self::Pass,
            Self::Pass => Self::Stop,
        }
    }
}

impl ConditionSplitter {
    /// Rewrites a boolean expression.
    fn split_expression(
        &mut self,
        expr: &Arc<Expr>,
        aim: TestPurpose,
    ) -> Result<Arc<Expr>, String> {
        match &**expr {
            Expr::BinaryOp { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                let (left, right) =
                    (self.split_expression(left, aim)?, self.split_expression(right, aim)?);
                Ok(Arc::new(Expr::BinaryOp { op: *op, left, right }))
            }
            // A negation swaps the purpose: what stops inside of it lets pass outside.
            Expr::UnaryOp { op: UnaryOp::Not, expr: inner } if !is_negated_test(inner) => {
                let expr = self.split_expression(inner, aim.other())?;
                Ok(Arc::new(Expr::UnaryOp { op: UnaryOp::Not, expr }))
            }
            Expr::BinaryOp { op: BinaryOp::NotEq, .. } => self.test(expr, aim.other()),
            Expr::IfThenElse { cond, then_expr, else_expr } if mentions_arguments(cond) => {
                // Each branch is taken if some reading leads there.
                self.nested += 1;
                if self.nested > CONDITIONS_MAX {
                    return Err("conditions of `if` are nested too deeply".to_owned());
                }
                // The condition is written twice, once for each branch and purpose, because one
                // reading may take the first branch and another reading the second.
                let (holds, fails) =
                    (self.split_expression(cond, aim)?, self.split_expression(cond, aim.other())?);
                self.nested -= 1;
                let fails = Arc::new(Expr::UnaryOp { op: UnaryOp::Not, expr: fails });
                let then_expr = conjunction(holds, self.split_expression(then_expr, aim)?);
                let else_expr = conjunction(fails, self.split_expression(else_expr, aim)?);
                let op = BinaryOp::Or;
                Ok(Arc::new(Expr::BinaryOp { op, left: then_expr, right: else_expr }))
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => Ok(Arc::new(Expr::IfThenElse {
                cond: Arc::clone(cond),
                then_expr: self.split_expression(then_expr, aim)?,
                else_expr: self.split_expression(else_expr, aim)?,
            })),
            _ => self.test(expr, aim),
        }
    }

    fn test(&mut self, expr: &Arc<Expr>, aim: TestPurpose) -> Result<Arc<Expr>, String> {
        if let Some(test) = folder_test(expr)? {
            self.folders.push(test);
        // Any other use would compare the sets themselves, which hold only the folders that
        // policies name.
        } else if mentions(expr, &is_folders) {
            return Err(format!(
                "only folder tests may use `context.{FOLDERS}`, such as \
                 `context.{FOLDERS}.path.contains(\"/data\")` or `containsAny([…])`"
            ));
        }
        match aim {
            TestPurpose::Pass => {
                self.path_patterns.extend(path_pattern(expr));
                Ok(Arc::clone(expr))
            }
            TestPurpose::Stop => {
                self.reads_readings |= mentions_arguments(expr);
                Ok(Arc::new(self.read_all_readings(expr)))
            }
        }
    }

    /// Rewrites an expression to use all readings.
    fn read_all_readings(&self, expr: &Expr) -> Expr {
        let again = |expr: &Arc<Expr>| Arc::new(self.read_all_readings(expr));
        match expr {
            Expr::GetAttr { expr, attr } => match (&**expr, attr.as_str()) {
                (Expr::Var(Var::Context), "arguments") => of_context(READINGS),
                // The resource has the arguments as written only, so its tests move to the context
                // as well.
                (Expr::Var(Var::Resource), "arguments") => of_context(READINGS),
                (Expr::Var(Var::Context), FOLDERS) => of_context(POSSIBLE_FOLDERS),
                _ => Expr::GetAttr { expr: again(expr), attr: attr.clone() },
            },
            // A `null` member counts as present in a policy that stops, and as absent in one that
            // permits.
            Expr::HasAttr { .. } if self.aim == TestPurpose::Pass => expr.clone(),
            Expr::HasAttr { expr, attrs } => {
                Expr::HasAttr { expr: again(expr), attrs: attrs.clone() }
            }
            Expr::UnaryOp { op, expr } => Expr::UnaryOp { op: *op, expr: again(expr) },
            Expr::BinaryOp { op, left, right } => {
                Expr::BinaryOp { op: *op, left: again(left), right: again(right) }
            }
            Expr::Like { expr, pattern } => {
                Expr::Like { expr: again(expr), pattern: pattern.clone() }
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => Expr::IfThenElse {
                cond: again(cond),
                then_expr: again(then_expr),
                else_expr: again(else_expr),
            },
            Expr::Set(elements) => Expr::Set(elements.iter().map(again).collect()),
            Expr::Record(members) => {
                let members = members.iter().map(|(name, value)| (name.clone(), again(value)));
                Expr::Record(members.collect())
            }
            other => other.clone(),
        }
    }
}

fn conjunction(left: Arc<Expr>, right: Arc<Expr>) -> Arc<Expr> {
    Arc::new(Expr::BinaryOp { op: BinaryOp::And, left, right })
}

fn of_context(name: &str) -> Expr {
    Expr::GetAttr { expr: Arc::new(Expr::Var(Var::Context)), attr: name.into() }
}

/// Whether the negation is itself a single test: `>` is parsed as not `<=`, false as not true.
fn is_negated_test(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOp::Less | BinaryOp::LessEq, .. })
        || chain(expr).is_some()
}

/// The test of an argument against a pattern that contains a path, if `expr` is one.
fn path_pattern(expr: &Expr) -> Option<PathPattern> {
    use cedar_policy::pst::PatternElem::{Char, Wildcard};
    let Expr::Like { expr, pattern } = expr else { return None };
    let climbs = pattern.windows(2).any(|pair| matches!(pair, [Char('.'), Char('.')]));
    // A pattern with `..` is about such paths, and one without `/` is not about paths.
    if climbs || !pattern.contains(&Char('/')) {
        return None;
    }
    let (Var::Context | Var::Resource, names) = chain(expr)? else { return None };
    let ["arguments", path @ ..] = &names[..] else { return None };
    let letter = |element: &_| match element {
        Char(letter) => *letter,
        Wildcard => '*',
    };
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    Some(PathPattern { path, text: pattern.iter().map(letter).collect() })
}

/// The folders that a test requires an argument to be in, if `expr` is a folder test.
fn folder_test(expr: &Expr) -> Result<Option<FolderTest>, String> {
    let Expr::BinaryOp { op, left, right } = expr else { return Ok(None) };
    let Some((Var::Context, names)) = chain(left) else { return Ok(None) };
    let [FOLDERS, path @ ..] = &names[..] else { return Ok(None) };
    let literals: Vec<&Expr> = match (op, &**right) {
        (BinaryOp::Contains, right) => vec![right],
        (BinaryOp::ContainsAny, Expr::Set(elements)) => elements.iter().map(|one| &**one).collect(),
        _ => return Ok(None),
    };
    let mut folders = Vec::new();
    for literal in literals {
        let Expr::Literal(Literal::String(text)) = literal else { return Ok(None) };
        folders.push(FolderPath::parse(text)?);
    }
    let path = path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    Ok(Some(FolderTest { path, folders }).filter(|test| !test.path.is_empty()))
}

fn is_folders(expr: &Expr) -> bool {
    match expr {
        Expr::GetAttr { expr, attr } => **expr == Expr::Var(Var::Context) && attr == FOLDERS,
        Expr::HasAttr { expr, attrs } => {
            **expr == Expr::Var(Var::Context) && attrs.first() == FOLDERS
        }
        _ => false,
    }
}

fn mentions_arguments(expr: &Expr) -> bool {
    mentions(expr, &|expr| match expr {
        Expr::GetAttr { expr, attr } => {
            matches!(**expr, Expr::Var(Var::Context | Var::Resource))
                && (attr == "arguments" || attr == FOLDERS)
        }
        _ => false,
    })
}

/// Whether some subexpression satisfies `is`.
fn mentions(expr: &Expr, is: &dyn Fn(&Expr) -> bool) -> bool {
    if is(expr) {
        return true;
    }
    match expr {
        Expr::UnaryOp { expr, .. }
        | Expr::GetAttr { expr, .. }
        | Expr::HasAttr { expr, .. }
        | Expr::Like { expr, .. } => mentions(expr, is),
        Expr::BinaryOp { left, right, .. } => mentions(left, is) || mentions(right, is),
        Expr::Is { expr, in_expr, .. } => {
            mentions(expr, is) || in_expr.iter().any(|expr| mentions(expr, is))
        }
        Expr::IfThenElse { cond, then_expr, else_expr } => {
            [cond, then_expr, else_expr].into_iter().any(|expr| mentions(expr, is))
        }
        Expr::Set(elements) => elements.iter().any(|expr| mentions(expr, is)),
        Expr::Record(members) => members.values().any(|expr| mentions(expr, is)),
        _ => false,
    }
}
