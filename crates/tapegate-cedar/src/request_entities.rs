//! The caller, action and resource as Cedar entities, cached for each combination.

use std::collections::{HashMap, HashSet, hash_map::RandomState};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cedar_policy::{
    Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, RestrictedExpression,
};

use crate::dialect::CedarDialect;
use crate::plan::ShortenedPolicies;
use crate::schema::ACTIONS;
use crate::{CedarPrincipal, CedarQuery};

/// How many scenes are cached.
const KEPT_MAX: usize = 1_024;
/// How often a scene is evaluated before a plan is made for it.
const ASKED_MIN: u8 = 2;

/// The entities of a request.
#[derive(Debug)]
pub(crate) struct RequestEntities {
    pub(crate) principal: EntityUid,
    pub(crate) action: EntityUid,
    pub(crate) resource: EntityUid,
    pub(crate) entities: Entities,
    key: EntitiesKey,
    /// How often it was evaluated, up to `ASKED_MIN`.
    evaluation_count: AtomicU8,
    plan: OnceLock<Option<ShortenedPolicies>>,
}

/// The parts of a request that a scene is made from.
#[derive(Debug, PartialEq, Eq)]
struct EntitiesKey {
    caller: [String; 3],
    roles: Vec<String>,
    client: Option<String>,
    server: String,
    method: String,
    name: String,
}

/// The cache of scenes.
#[derive(Debug, Default)]
pub(crate) struct EntitiesCache {
    hasher: RandomState,
    entries: Mutex<HashMap<u64, Arc<RequestEntities>>>,
}

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
    /// The scene of a question, from the cache or new.
    pub(crate) fn get(
        &self,
        names: &TypeNames,
        question: &CedarQuery<'_>,
        action: &str,
        kind: &str,
    ) -> Option<Arc<RequestEntities>> {
        let place = self.place(question);
        {
            let kept = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(request_entities) = kept.get(&place)
                // The map's key is only a hash, and two requests may share it.
                && request_entities.key.matches(question)
            {
                return Some(Arc::clone(request_entities));
            }
        }
        // Built without the lock, so that other sessions need not wait. Building it twice does no
        // harm.
        let request_entities = Arc::new(RequestEntities::new(names, question, action, kind, None)?);
        let mut kept = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            // Names of resources come from the agent, so the cache must be bounded.
            kept.clear();
        }
        kept.insert(place, Arc::clone(&request_entities));
        Some(request_entities)
    }

    fn place(&self, question: &CedarQuery<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        let CedarPrincipal { name, namespace, service_account, roles, client } = &question.caller;
        (name, namespace, service_account, roles, client).hash(&mut hasher);
        (question.server, question.method, question.name).hash(&mut hasher);
        hasher.finish()
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

    fn matches(&self, question: &CedarQuery<'_>) -> bool {
        let caller = &question.caller;
        self.name == question.name
            && self.server == question.server
            && self.method == question.method
            && self.caller == [caller.name, caller.namespace, caller.service_account]
            && self.roles == caller.roles
            && self.client.as_deref() == caller.client
    }
}

impl RequestEntities {
    /// Builds a scene. `arguments` are given only if policies read them from the resource.
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
            key: EntitiesKey::new(question),
            evaluation_count: AtomicU8::new(0),
            plan: OnceLock::new(),
        })
    }

    /// The plan, once the scene was evaluated often enough.
    pub(crate) fn plan(&self, policies: &PolicySet) -> Option<&ShortenedPolicies> {
        // A plan costs several evaluations, so it pays only for a scene that comes again.
        if self.evaluation_count.load(Ordering::Relaxed) < ASKED_MIN {
            self.evaluation_count.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.plan.get_or_init(|| ShortenedPolicies::new(policies, self)).as_ref()
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
