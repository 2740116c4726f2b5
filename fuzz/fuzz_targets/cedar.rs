//! Any policies load or are refused. An argument of an unexpected form never permits a call that the same
//! policies refuse without it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_cedar::{CedarPolicies, CedarQuery, CedarText, ToolDefinition};

/// Policies that read the arguments of the query below.
const OWN: &str = r#"permit(principal, action, resource);
forbid(principal, action, resource) when { context.arguments has s && context.arguments.s == "no" };
forbid(principal, action, resource) when { context.arguments has n && context.arguments.n > 3 };
forbid(principal, action, resource) when { context.arguments has o.s && context.arguments.o.s like "*x*" };"#;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let [policies, schema, arguments] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let tool = ToolDefinition {
        server: "s".to_owned(),
        name: "t".to_owned(),
        input_schema: String::from_utf8_lossy(schema).into_owned(),
    };
    let query = CedarQuery {
        server: "s",
        method: "tools/call",
        name: "t",
        arguments: Some(arguments),
        ..CedarQuery::default()
    };
    let text =
        CedarText { name: "fuzz".to_owned(), text: String::from_utf8_lossy(policies).into_owned() };
    let (cedar, faults) = CedarPolicies::load(&[text], None, &[tool]);
    assert_eq!(cedar.is_none(), faults.iter().any(|fault| fault.error));
    if let Some(cedar) = cedar {
        let first = cedar.authorize(&query);
        for _ in 0..3 {
            assert_eq!(cedar.authorize(&query), first);
        }
    }
    let own = CedarText { name: "own".to_owned(), text: OWN.to_owned() };
    let (Some(cedar), _) = CedarPolicies::load(&[own], None, &[]) else { unreachable!() };
    let answer = cedar.authorize(&query);
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(arguments) {
        let bad = value["s"] == "no"
            || value["n"].as_i64().is_some_and(|n| n > 3)
            || value["o"]["s"].as_str().is_some_and(|text| text.contains('x'));
        assert!(!(bad && answer.permit));
    }
});
