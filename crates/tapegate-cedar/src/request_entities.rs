//! The caller, action and resource as Cedar entities, cached for each combination.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, Request,
    Response, RestrictedExpression,
};

use crate::dialect::CedarDialect;
use crate::schema::ACTIONS;
use crate::{CedarPrincipal, CedarQuery};

/// How many combinations are cached.
const CACHED_MAX: usize = 1_024;

#[derive(Debug)]
pub(crate) struct RequestEntities {
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
    entities: Entities,
}

/// The parts of a request that its entities are made from.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EntitiesKey {
    caller: [String; 3],
    roles: Vec<String>,
    client: Option<String>,
    server: String,
    method: String,
    name: String,
}

/// The entities of earlier requests. Making them takes about a fifth of a small request.
#[derive(Debug, Default)]
pub(crate) struct EntitiesCache(Mutex<HashMap<EntitiesKey, Arc<RequestEntities>>>);

/// The type and action names, parsed once.
#[derive(Debug)]
pub(crate) struct TypeNames {
    types: HashMap<&'static str, EntityTypeName>,
    actions: HashMap<&'static str, EntityUid>,
}

impl TypeNames {
    /// The names in a dialect; `None` if Cedar rejects them, which does not happen.
    pub(crate) fn new(dialect: &CedarDialect) -> Option<Self> {
        let kinds =
            ["App", "Role", "Server", "Tool", "ToolCall", "Resource", "Prompt", "McpMethod"];
        let types: Option<HashMap<_, _>> = kinds
            .into_iter()
            .map(|kind| Some((kind, dialect.qualified(kind).parse().ok()?)))
            .collect();
        let action: EntityTypeName = dialect.qualified("Action").parse().ok()?;
        let actions = ACTIONS.iter().map(|(name, _)| {
            (*name, EntityUid::from_type_name_and_id(action.clone(), EntityId::new(name)))
        });
        Some(Self { types: types?, actions: actions.collect() })
    }

    fn uid(&self, kind: &str, id: &str) -> Option<EntityUid> {
        Some(EntityUid::from_type_name_and_id(self.types.get(kind)?.clone(), EntityId::new(id)))
    }
}

impl EntitiesCache {
    /// The entities of a call, from the cache or new.
    pub(crate) fn get(
        &self,
        names: &TypeNames,
        question: &CedarQuery<'_>,
        action: &str,
        kind: &str,
    ) -> Option<Arc<RequestEntities>> {
        let key = EntitiesKey::new(question);
        if let Some(known) = self.lock().get(&key) {
            return Some(Arc::clone(known));
        }
        // Made without the lock, so that other sessions need not wait. Making them twice does no
        // harm.
        let new = Arc::new(RequestEntities::new(names, question, action, kind, None)?);
        let mut cached = self.lock();
        if cached.len() >= CACHED_MAX {
            // Names of resources come from the agent, so the cache must be bounded.
            cached.clear();
        }
        cached.insert(key, Arc::clone(&new));
        Some(new)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EntitiesKey, Arc<RequestEntities>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EntitiesKey {
    fn new(question: &CedarQuery<'_>) -> Self {
        let caller = &question.caller;
        Self {
            caller: [caller.name, caller.namespace, caller.service_account].map(str::to_owned),
            roles: caller.roles.to_vec(),
            client: caller.client.map(str::to_owned),
            server: question.server.to_owned(),
            method: question.method.to_owned(),
            name: question.name.to_owned(),
        }
    }
}

impl RequestEntities {
    /// The entities of a call. `arguments` are given only if policies read them from the resource.
    pub(crate) fn new(
        names: &TypeNames,
        question: &CedarQuery<'_>,
        action: &str,
        kind: &str,
        arguments: Option<RestrictedExpression>,
    ) -> Option<Self> {
        let principal = names.uid("App", question.caller.name)?;
        let method = kind == "McpMethod";
        let id = if method { question.method } else { question.name };
        let resource = names.uid(kind, id)?;
        let server = names.uid("Server", question.server)?;
        let mut all = vec![app(names, &principal, &question.caller)?];
        for role in question.caller.roles {
            all.push(named_entity(names.uid("Role", role)?, role)?);
        }
        all.push(named_entity(server.clone(), question.server)?);
        let name = if question.name.is_empty() { id } else { question.name };
        let mut attributes =
            texts(&[("name", name), ("server", question.server), ("method", question.method)]);
        if kind == "Resource" {
            attributes.extend(texts(&[("uri", question.name)]));
        }
        attributes.extend(arguments.map(|arguments| ("arguments".to_owned(), arguments)));
        all.push(Entity::new(resource.clone(), attributes, [server].into()).ok()?);
        // A role may be listed twice, but entities must be unique.
        let mut known = HashSet::new();
        all.retain(|entity| known.insert(entity.uid()));
        Some(Self {
            principal,
            action: names.actions.get(action)?.clone(),
            resource,
            entities: Entities::from_entities(all, None).ok()?,
        })
    }

    /// Evaluates policies for the call.
    pub(crate) fn authorize(&self, policies: &PolicySet, context: Context) -> Option<Response> {
        let (principal, resource) = (self.principal.clone(), self.resource.clone());
        let request = Request::new(principal, self.action.clone(), resource, context, None).ok()?;
        Some(Authorizer::new().is_authorized(&request, policies, &self.entities))
    }
}

fn app(names: &TypeNames, uid: &EntityUid, caller: &CedarPrincipal<'_>) -> Option<Entity> {
    let mut attributes = texts(&[
        ("name", caller.name),
        ("namespace", caller.namespace),
        ("service_account", caller.service_account),
    ]);
    attributes
        .extend(caller.client.map(|client| texts(&[("client", client)])).into_iter().flatten());
    let roles: Option<HashSet<EntityUid>> =
        caller.roles.iter().map(|role| names.uid("Role", role)).collect();
    Entity::new(uid.clone(), attributes, roles?).ok()
}

fn named_entity(uid: EntityUid, name: &str) -> Option<Entity> {
    Entity::new(uid, texts(&[("name", name)]), HashSet::new()).ok()
}

fn texts(pairs: &[(&str, &str)]) -> HashMap<String, RestrictedExpression> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, text)| {
            ((*name).to_owned(), RestrictedExpression::new_string((*text).to_owned()))
        })
        .collect()
}
