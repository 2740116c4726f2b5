//! The spelling of names in policies.
//!
//! Policies may use no namespace, `Tapegate::`, or `ThoughtGate::` as older files do; a tool is a
//! `Tool` or, formerly, a `ToolCall`. Requests are built in the spelling that the policies use. All
//! policies of a set must use the same one.

use cedar_policy::pst::{
    ActionConstraint, Clause, EntityOrSlot, EntityType, EntityUID, Expr, Literal, Policy,
    PrincipalConstraint, ResourceConstraint,
};

/// The namespaces that are ours.
const NAMESPACES: [&str; 3] = ["", "Tapegate", "ThoughtGate"];

/// The spelling of names in a set of policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CedarDialect {
    /// The namespace; empty for none.
    pub(crate) namespace: &'static str,
    /// The type name of a tool.
    pub(crate) tool: &'static str,
    /// Whether only the two actions of older files exist: `tools/call`, and `mcp/method` for
    /// everything else.
    pub(crate) two_actions: bool,
}

/// A type or entity named in a policy.
#[derive(Debug)]
pub(crate) struct NameReference {
    namespace: String,
    kind: String,
    id: Option<String>,
}

/// The type's name without its namespace.
pub(crate) fn base_name(kind: &EntityType) -> &str {
    kind.0.id.as_str()
}

impl CedarDialect {
    /// The dialect of the policies; on failure, the first offending policy and the error message.
    pub(crate) fn of(policies: &[&[NameReference]]) -> Result<Self, (usize, String)> {
        let mut namespace = None;
        let mut tool = None;
        let all =
            || policies.iter().enumerate().flat_map(|(n, all)| all.iter().map(move |m| (n, m)));
        for (place, mention) in all() {
            let own = NAMESPACES.into_iter().find(|own| *own == mention.namespace);
            let own = own.ok_or_else(|| (place, foreign_namespace_message(&mention.namespace)))?;
            let known = *namespace.get_or_insert(own);
            if known != own {
                return Err((place, mixed_namespaces_message(known, own)));
            }
            let name = match mention.kind.as_str() {
                "Tool" => "Tool",
                "ToolCall" => "ToolCall",
                _ => continue,
            };
            let known = *tool.get_or_insert(name);
            if known != name {
                let message = "a tool is `Tool` in one policy and `ToolCall` in another; \
                             use one of them throughout, `Tool` for new policies";
                return Err((place, message.to_owned()));
            }
        }
        let namespace = namespace.unwrap_or_default();
        // One name that older files could not have is enough: the author knows the newer actions.
        let old = namespace == "ThoughtGate" && !all().any(|(_, mention)| mention.is_new());
        let tool = tool.unwrap_or(if old { "ToolCall" } else { "Tool" });
        Ok(Self { namespace, tool, two_actions: old })
    }

    /// A name with its namespace.
    pub(crate) fn qualified(&self, name: &str) -> String {
        match self.namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}::{name}"),
        }
    }

    /// The action for a method, and the type of its resource.
    pub(crate) fn action(&self, method: &str, name: &str) -> (&'static str, &'static str) {
        match method {
            "tools/call" => ("tools/call", self.tool),
            _ if self.two_actions => ("mcp/method", "McpMethod"),
            "resources/read" => ("resources/read", "Resource"),
            "resources/subscribe" | "subscriptions/listen" => ("resources/subscribe", "Resource"),
            "prompts/get" => ("prompts/get", "Prompt"),
            // The reference is to a prompt by name, or to a resource by URI.
            "completion/complete" if name.contains("://") => ("completion/complete", "Resource"),
            "completion/complete" => ("completion/complete", "Prompt"),
            _ => ("mcp/method", "McpMethod"),
        }
    }
}

impl NameReference {
    fn new(kind: &EntityType, id: Option<&str>) -> Self {
        let parts: Vec<&str> = kind.0.namespace.iter().map(|part| part.as_str()).collect();
        let namespace = parts.join("::");
        Self { namespace, kind: base_name(kind).to_owned(), id: id.map(str::to_owned) }
    }

    /// Whether it cannot occur in older files.
    fn is_new(&self) -> bool {
        match self.kind.as_str() {
            "Action" => {
                let old = ["tools/call", "mcp/method", "Forward", "Approve"];
                self.id.as_deref().is_some_and(|id| !old.contains(&id))
            }
            kind => matches!(kind, "Tool" | "Resource" | "Prompt" | "Server"),
        }
    }

    /// The warning for an action whose meaning has changed.
    pub(crate) fn warning(&self, dialect: &CedarDialect) -> Option<String> {
        let action = self.id.as_deref().filter(|_| self.kind == "Action")?;
        match action {
            "Forward" | "Approve" if dialect.namespace == "ThoughtGate" => {
                Some(format!("no request uses the action `{action}`; the policy has no effect"))
            }
            "mcp/method" if dialect.namespace == "ThoughtGate" && !dialect.two_actions => Some(
                "`mcp/method` does not cover resources and prompts here, because another policy \
                 names an action or type of their own; name `resources/read`, \
                 `resources/subscribe`, `prompts/get` and `completion/complete` too"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Every type and entity that a policy names.
pub(crate) fn mentions(policy: &Policy) -> Vec<NameReference> {
    let mut found = Vec::new();
    let body = policy.body();
    let slot = |entity: &EntityOrSlot| match entity {
        EntityOrSlot::Entity(uid) => Some(mention(uid)),
        EntityOrSlot::Slot(_) => None,
    };
    match &body.principal {
        PrincipalConstraint::Any => {}
        PrincipalConstraint::Eq(one) | PrincipalConstraint::In(one) => found.extend(slot(one)),
        PrincipalConstraint::Is(kind) => found.push(NameReference::new(kind, None)),
        PrincipalConstraint::IsIn(kind, one) => {
            found.push(NameReference::new(kind, None));
            found.extend(slot(one));
        }
    }
    match &body.action {
        ActionConstraint::Any => {}
        ActionConstraint::Eq(uid) => found.push(mention(uid)),
        ActionConstraint::In(uids) => found.extend(uids.iter().map(mention)),
    }
    match &body.resource {
        ResourceConstraint::Any => {}
        ResourceConstraint::Eq(one) | ResourceConstraint::In(one) => found.extend(slot(one)),
        ResourceConstraint::Is(kind) => found.push(NameReference::new(kind, None)),
        ResourceConstraint::IsIn(kind, one) => {
            found.push(NameReference::new(kind, None));
            found.extend(slot(one));
        }
    }
    for clause in body.clauses() {
        let (Clause::When(expr) | Clause::Unless(expr)) = clause;
        collect_mentions(expr, &mut found);
    }
    found
}

fn mention(uid: &EntityUID) -> NameReference {
    NameReference::new(&uid.ty, Some(uid.eid.as_str()))
}

fn collect_mentions(expr: &Expr, found: &mut Vec<NameReference>) {
    match expr {
        Expr::Literal(Literal::EntityUID(uid)) => found.push(mention(uid)),
        Expr::UnaryOp { expr, .. }
        | Expr::GetAttr { expr, .. }
        | Expr::HasAttr { expr, .. }
        | Expr::Like { expr, .. } => collect_mentions(expr, found),
        Expr::BinaryOp { left, right, .. } => {
            collect_mentions(left, found);
            collect_mentions(right, found);
        }
        Expr::Is { expr, entity_type, in_expr } => {
            found.push(NameReference::new(entity_type, None));
            collect_mentions(expr, found);
            in_expr.iter().for_each(|expr| collect_mentions(expr, found));
        }
        Expr::IfThenElse { cond, then_expr, else_expr } => {
            [cond, then_expr, else_expr].into_iter().for_each(|expr| collect_mentions(expr, found));
        }
        Expr::Set(all) => all.iter().for_each(|expr| collect_mentions(expr, found)),
        Expr::Record(members) => members.values().for_each(|expr| collect_mentions(expr, found)),
        _ => {}
    }
}

fn foreign_namespace_message(namespace: &str) -> String {
    format!(
        "`{namespace}` is not a supported namespace; write names without a namespace, or with \
         `Tapegate::`"
    )
}

fn mixed_namespaces_message(one: &str, two: &str) -> String {
    let say = |namespace: &str| match namespace {
        "" => "no namespace".to_owned(),
        other => format!("`{other}::`"),
    };
    format!(
        "names are written with {} in one policy and with {} in another; use one way throughout",
        say(one),
        say(two)
    )
}
