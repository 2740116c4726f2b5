//! For any arguments, the decision is never more permissive than a simple, slow evaluation.

use cedar_policy::{Context, Decision, Effect, RestrictedExpression};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::request_entities::RequestEntities;

const CONDITIONS: [&str; 10] = [
    "context.arguments has s && context.arguments.s == \"a\"",
    "context.arguments has s && context.arguments.s like \"*b*\"",
    "context.arguments has n && context.arguments.n > 3",
    "context.arguments has n && context.arguments.n * 4611686018427387904 < 5",
    "context.arguments has b && context.arguments.b",
    "context.arguments has l && context.arguments.l.contains(\"a\")",
    "context.arguments has o.s && context.arguments.o.s != \"a\"",
    "!(context.arguments has s)",
    "resource.name == \"x\" && context.arguments has n && context.arguments.n == 1",
    "context.policy_id == \"main\"",
];
const SCOPES: [&str; 4] = [
    "resource",
    "resource == Tool::\"x\"",
    "resource == Tool::\"y\"",
    "resource in Server::\"files\"",
];
const SCHEMA: &str = r#"{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"},
    "b":{"type":"boolean"},"l":{"type":"array","items":{"type":"string"}},
    "o":{"type":"object","properties":{"s":{"type":"string"}}}}}"#;

fn policies() -> impl Strategy<Value = String> {
    let one = (
        any::<bool>(),
        0..SCOPES.len(),
        prop::collection::vec((any::<bool>(), 0..CONDITIONS.len()), 0..3),
    );
    prop::collection::vec(one, 1..8).prop_map(|all| {
        let mut text = String::new();
        for (forbid, scope, clauses) in all {
            let effect = if forbid { "forbid" } else { "permit" };
            text += &format!("{effect}(principal, action, {})", SCOPES[scope]);
            for (when, condition) in clauses {
                let word = if when { "when" } else { "unless" };
                text += &format!(" {word} {{ {} }}", CONDITIONS[condition]);
            }
            text += ";\n";
        }
        text
    })
}

/// Any JSON, sometimes with the keys that policies read.
fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ab]{0,3}".prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof!["[snblo]", "[SNBLO]", ".{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

/// An object without null members, which may be read as false or as zero.
fn without_nulls(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let kept = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect())
}

/// Arguments that match the schema.
fn fitting() -> impl Strategy<Value = Value> {
    let text = || prop::option::of("[ab]{0,2}");
    let list = prop::option::of(prop::collection::vec("[ab]", 0..3));
    (text(), prop::option::of(-5_i64..5), prop::option::of(any::<bool>()), list, text())
        .prop_map(|(s, n, b, l, o)| json!({ "s": s, "n": n, "b": b, "l": l, "o": { "s": o } }))
        .prop_map(without_nulls)
}

/// An unconditional permit, and forbids with tests that stop.
fn policies_that_stop() -> impl Strategy<Value = String> {
    prop::collection::vec(0..6_usize, 1..4).prop_map(|conditions| {
        let forbid = |at: usize| {
            format!("forbid(principal, action, resource) when {{ {} }};\n", CONDITIONS[at])
        };
        let forbids: String = conditions.into_iter().map(forbid).collect();
        format!("permit(principal, action, resource);\n{forbids}")
    })
}

/// Arguments that a lenient server takes for the same.
fn respelled(value: &Value, how: u8) -> Value {
    let text = |text: &str| match how {
        0 => format!(" {text}\n"),
        1 => text.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        2 => text.chars().map(|one| char::from_u32(one as u32 + 0xfee0).unwrap()).collect(),
        3 => json!(text).to_string(),
        _ => text.to_owned(),
    };
    match value {
        Value::String(own) => text(own).into(),
        Value::Number(_) | Value::Bool(_) if how < 4 => value.to_string().into(),
        Value::Array(all) if how == 5 => Value::from(json!(all).to_string()),
        Value::Array(all) => all.iter().map(|one| respelled(one, how)).collect(),
        Value::Object(members) => {
            let key = |name: &String| if how == 4 { name.to_uppercase() } else { name.clone() };
            members.iter().map(|(name, one)| (key(name), respelled(one, how))).collect()
        }
        other => other.clone(),
    }
}

/// A value converted the simple way; null is left out.
fn plain(value: &Value) -> Option<RestrictedExpression> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => RestrictedExpression::new_long(whole),
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e15 => {
                RestrictedExpression::new_long(float as i64)
            }
            _ => RestrictedExpression::new_string(number.to_string()),
        },
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Array(all) => RestrictedExpression::new_set(all.iter().filter_map(plain)),
        Value::Object(members) => RestrictedExpression::new_record(
            members.iter().filter_map(|(name, value)| Some((name.clone(), plain(value)?))),
        )
        .unwrap(),
    })
}

/// Whether Cedar itself, called the simple way, permits a call; a forbid that fails denies.
fn reference(cedar: &CedarPolicies, name: &str, arguments: &Value) -> bool {
    let question =
        CedarQuery { server: "files", method: "tools/call", name, ..CedarQuery::default() };
    let scene = RequestEntities::new(&cedar.names, &question, "tools/call", "Tool", None).unwrap();
    let arguments = plain(arguments).unwrap();
    let context = Context::from_pairs([
        ("arguments".to_owned(), arguments.clone()),
        ("readings".to_owned(), arguments),
        ("policy_id".to_owned(), RestrictedExpression::new_string("main".to_owned())),
    ]);
    let response = scene.authorize(&cedar.policies, context.unwrap()).unwrap();
    let failed = response.diagnostics().errors().any(|error| {
        let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
        cedar.policies.policy(error.policy_id()).unwrap().effect() == Effect::Forbid
    });
    response.decision() == Decision::Allow && !failed
}

fn loaded(text: &str, pinned: bool) -> Option<CedarPolicies> {
    let tools = [tool("files", "x", SCHEMA), tool("files", "y", SCHEMA)];
    load(text, if pinned { &tools } else { &[] }).0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arguments_that_fit_are_answered_as_cedar_answers(
        text in policies(), pinned in any::<bool>(), name in "[xyz]", arguments in prop::collection::vec(fitting(), 1..8)
    ) {
        let cedar = loaded(&text, pinned).unwrap();
        for arguments in arguments {
            let answer = call(&cedar, &name, &arguments.to_string());
            prop_assert_eq!(answer.permit, reference(&cedar, &name, &arguments), "{} {}", text, arguments);
        }
    }

    #[test]
    fn no_arguments_turn_a_refusal_into_a_permit(
        text in policies(), pinned in any::<bool>(), name in "[xyz]", arguments in prop::collection::vec(json_values(), 1..16)
    ) {
        let cedar = loaded(&text, pinned).unwrap();
        for arguments in arguments {
            let answer = call(&cedar, &name, &arguments.to_string());
            let plain = match &arguments {
                Value::Object(_) => arguments.clone(),
                _ => json!({}),
            };
            if answer.permit {
                prop_assert!(reference(&cedar, &name, &plain), "{} {}", text, arguments);
            }
        }
    }

    /// A denied call stays denied in any spelling that lenient servers take for the same.
    #[test]
    fn no_spelling_turns_a_refusal_into_a_permit(
        text in policies_that_stop(), pinned in any::<bool>(), arguments in fitting(), how in 0..6_u8
    ) {
        let cedar = loaded(&text, pinned).unwrap();
        let other = respelled(&arguments, how);
        if !call(&cedar, "x", &arguments.to_string()).permit {
            let answer = call(&cedar, "x", &other.to_string());
            prop_assert!(!answer.permit, "{} {} {}", text, arguments, other);
        }
    }

    #[test]
    fn bytes_that_nobody_thought_of_are_no_reason_to_stop(
        text in policies(), bytes in prop::collection::vec(any::<u8>(), 0..64)
    ) {
        let cedar = loaded(&text, false).unwrap();
        let question = CedarQuery { server: "files", method: "tools/call", name: "x", arguments: Some(&bytes), ..CedarQuery::default() };
        let _ = cedar.authorize(&question);
    }

    #[test]
    fn text_that_nobody_thought_of_is_refused_or_loads(text in "[a-z(){};:,\"=@ \n]{0,80}", schema in "[a-z{}\\[\\]:,\"$]{0,60}") {
        let _ = load(&text, &[tool("files", "x", &schema)]);
    }
}
