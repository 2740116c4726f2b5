//! The tools that a policy can apply to, by the conditions that precede any argument.

use std::collections::BTreeSet;

use cedar_policy::pst::{
    ActionConstraint, BinaryOp, Clause, EntityOrSlot, EntityUID, Expr, Literal, Policy,
    ResourceConstraint, Var,
};

use crate::attribute_reads::{AttributeReads, chain};
use crate::dialect::base_name;
use crate::schema::ACTIONS;

/// The tools that a policy can apply to; `None` means all.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolSelector {
    pub(crate) names: Option<BTreeSet<String>>,
    pub(crate) servers: Option<BTreeSet<String>>,
    /// The actions, by name; `None` means all.
    actions: Option<BTreeSet<String>>,
    /// The type of the resource, if the policy names one.
    kind: Option<String>,
}

/// A restriction of the resource by one condition.
enum ResourceFilter {
    Names(BTreeSet<String>),
    Servers(BTreeSet<String>),
}

impl ToolSelector {
    /// Reads the scope of a policy and the conditions before the first argument.
    pub(crate) fn of(policy: &Policy) -> Self {
        let body = policy.body();
        let mut selector = Self { actions: actions(&body.action), ..Self::default() };
        match &body.resource {
            ResourceConstraint::Any => {}
            ResourceConstraint::Eq(EntityOrSlot::Entity(uid)) => {
                selector.kind = Some(base_name(&uid.ty).to_owned());
                selector.narrow(ResourceFilter::Names([uid.eid.to_string()].into()));
            }
            ResourceConstraint::In(entity) => selector.add_entity(entity),
            ResourceConstraint::Is(kind) => selector.kind = Some(base_name(kind).to_owned()),
            ResourceConstraint::IsIn(kind, entity) => {
                selector.kind = Some(base_name(kind).to_owned());
                selector.add_entity(entity);
            }
            // A slot of a template. Templates are refused when they are loaded.
            ResourceConstraint::Eq(_) => {}
        }
        for clause in body.clauses() {
            let mut reads = AttributeReads::default();
            reads.clause(clause);
            match clause {
                Clause::When(expr) => {
                    // Cedar evaluates clauses in order, so a condition after the first argument
                    // does not protect its reading.
                    if !selector.conditions(expr) {
                        break;
                    }
                }
                Clause::Unless(_) if reads.arguments.touches(&[]) => break,
                // It may exclude tools, but leaving it out only makes the selection wider.
                Clause::Unless(_) => {}
            }
        }
        selector
    }

    fn add_entity(&mut self, entity: &EntityOrSlot) {
        if let EntityOrSlot::Entity(uid) = entity
            && let Some(narrowed) = server(uid)
        {
            self.narrow(narrowed);
        }
    }

    /// Applies the conjuncts of a condition in order; false at the first one that reads an
    /// argument.
    fn conditions(&mut self, expr: &Expr) -> bool {
        if let Expr::BinaryOp { op: BinaryOp::And, left, right } = expr {
            return self.conditions(left) && self.conditions(right);
        }
        let mut reads = AttributeReads::default();
        reads.walk(expr, None);
        if reads.arguments.touches(&[]) {
            return false;
        }
        if let Some(narrowed) = narrowing_of(expr) {
            self.narrow(narrowed);
        }
        true
    }

    fn narrow(&mut self, narrowed: ResourceFilter) {
        let (known, new) = match narrowed {
            ResourceFilter::Names(names) => (&mut self.names, names),
            ResourceFilter::Servers(servers) => (&mut self.servers, servers),
        };
        *known = Some(match known.take() {
            Some(known) => known.intersection(&new).cloned().collect(),
            None => new,
        });
    }

    /// Whether the policy can apply to this action on this resource.
    pub(crate) fn may_be_about(&self, action: &str, kind: &str, server: &str, name: &str) -> bool {
        self.actions.as_ref().is_none_or(|actions| actions.contains(action))
            && self.kind.as_deref().is_none_or(|own| own == kind)
            && self.includes_tool(server, name)
    }

    /// Whether the policy can apply to tool calls.
    pub(crate) fn includes_tools(&self) -> bool {
        self.actions.as_ref().is_none_or(|actions| actions.contains("tools/call"))
            && self.kind.as_deref().is_none_or(|kind| matches!(kind, "Tool" | "ToolCall"))
    }

    /// Whether the policy can apply to anything but tool calls.
    pub(crate) fn includes_non_tools(&self) -> bool {
        let tools_only =
            |actions: &BTreeSet<String>| actions.iter().all(|action| action == "tools/call");
        !self.actions.as_ref().is_some_and(tools_only)
            && self.kind.as_deref().is_none_or(|kind| !matches!(kind, "Tool" | "ToolCall"))
    }

    /// Whether it includes a tool of a server.
    pub(crate) fn includes_tool(&self, server: &str, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
            && self.servers.as_ref().is_none_or(|servers| servers.contains(server))
    }
}

/// The actions of a scope. `in` may name a group of the user's own schema, whose members are not
/// known here.
fn actions(constraint: &ActionConstraint) -> Option<BTreeSet<String>> {
    let own = |uid: &EntityUID| ACTIONS.iter().any(|(name, _)| *name == uid.eid);
    match constraint {
        ActionConstraint::Eq(uid) => Some([uid.eid.to_string()].into()),
        ActionConstraint::In(uids) if uids.iter().all(own) => {
            Some(uids.iter().map(|uid| uid.eid.to_string()).collect())
        }
        ActionConstraint::In(_) | ActionConstraint::Any => None,
    }
}

fn narrowing_of(expr: &Expr) -> Option<ResourceFilter> {
    match expr {
        Expr::BinaryOp { op: BinaryOp::Or, left, right } => {
            match (narrowing_of(left)?, narrowing_of(right)?) {
                (ResourceFilter::Names(one), ResourceFilter::Names(two)) => {
                    Some(ResourceFilter::Names(one.union(&two).cloned().collect()))
                }
                (ResourceFilter::Servers(one), ResourceFilter::Servers(two)) => {
                    Some(ResourceFilter::Servers(one.union(&two).cloned().collect()))
                }
                _ => None,
            }
        }
        Expr::BinaryOp { op: BinaryOp::Eq, left, right } => {
            equal(left, right).or_else(|| equal(right, left))
        }
        Expr::BinaryOp { op: BinaryOp::In, left, right } => match (&**left, &**right) {
            (Expr::Var(Var::Resource), Expr::Literal(Literal::EntityUID(uid))) => server(uid),
            _ => None,
        },
        Expr::BinaryOp { op: BinaryOp::Contains, left, right } => {
            let Expr::Set(elements) = &**left else { return None };
            let texts: Option<BTreeSet<String>> = elements.iter().map(|one| text(one)).collect();
            attribute(right, texts?)
        }
        _ => None,
    }
}

fn equal(left: &Expr, right: &Expr) -> Option<ResourceFilter> {
    if let (Expr::Var(Var::Resource), Expr::Literal(Literal::EntityUID(uid))) = (left, right) {
        return Some(ResourceFilter::Names([uid.eid.to_string()].into()));
    }
    attribute(left, [text(right)?].into())
}

/// The restriction by `resource.name` or `resource.server`.
fn attribute(expr: &Expr, texts: BTreeSet<String>) -> Option<ResourceFilter> {
    let (Var::Resource, names) = chain(expr)? else { return None };
    match names[..] {
        ["name"] => Some(ResourceFilter::Names(texts)),
        ["server"] => Some(ResourceFilter::Servers(texts)),
        _ => None,
    }
}

fn server(uid: &EntityUID) -> Option<ResourceFilter> {
    (base_name(&uid.ty) == "Server").then(|| ResourceFilter::Servers([uid.eid.to_string()].into()))
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(Literal::String(text)) => Some(text.to_string()),
        _ => None,
    }
}
