//! One-time links in a browser: a page that shows the call, and a button that decides.

use super::super::super::setup::{answer, call_with};
use super::{HubProcess, event, policy, receiver, start_accepted, text, webhook};
use crate::http_peers::{self, ReceivedReply, WebServer};
use crate::support::RunningSession;
use tapegate_store::approvals::ApprovalOutcome;

/// What a browser sends with the form of a page that has the referrer policy of ours.
const BUTTON: [&str; 4] = [
    "origin: null",
    "sec-fetch-site: same-origin",
    "accept: text/html,application/xhtml+xml,*/*;q=0.8",
    "content-type: application/x-www-form-urlencoded",
];

/// A hub that has told a webhook of a call with these arguments, and the paths of its links.
fn asked(
    hooks: &WebServer,
    workflow: &str,
    arguments: &str,
) -> (HubProcess, RunningSession, [String; 2]) {
    let workflow = format!("channels: [hook]{workflow}");
    let hub = start_accepted(&policy(&workflow, &webhook("hook", hooks)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call_with(1, "ask", arguments).as_bytes());
    let asked = event(&hooks.wait(1)[0]);
    let path = |key: &str| text(&asked[key]).strip_prefix(&hub.url).unwrap().to_owned();
    let paths = ["approve_url", "deny_url"].map(path);
    (hub, run, paths)
}

fn send(hub: &HubProcess, method: &str, path: &str, headers: &[&str]) -> ReceivedReply {
    http_peers::ask(hub.port(), &format!("{method} {path}"), headers, "")
}

/// Checks that a reply is a page that does nothing, and tells nobody where it is.
fn is_inert(page: &ReceivedReply) {
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{}", page.head);
    let policy = page.header("content-security-policy").unwrap();
    for part in
        ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    for (name, value) in [
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(page.header(name), Some(value), "{}", page.head);
    }
    for active in ["<script", "<img", "<a ", "<link", "<style", "http-equiv"] {
        assert!(!page.body.contains(active), "{active}: {}", page.body);
    }
}

#[test]
fn a_link_that_is_opened_shows_the_call_and_only_its_button_decides() {
    let hooks = receiver("200 OK");
    let hostile = r#"{"path":"<script>alert(1)</script><img src=x onerror=\"y\">","token":"&amp;","secret":"open sesame"}"#;
    let (hub, run, [approve, deny]) = asked(&hooks, ", redact_fields: [secret]", hostile);
    // Also as a person follows it from a mail or a chat in the browser.
    let from_elsewhere = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"];
    for headers in [&[][..], &from_elsewhere, &["accept: text/html"]] {
        for (path, verb) in [(&approve, "Approve"), (&deny, "Deny")] {
            let page = send(&hub, "GET", path, headers);
            assert_eq!(page.status, 200, "{}", page.body);
            is_inert(&page);
            for part in [
                &format!("<h1>{verb} this call?</h1>"),
                &format!(
                    "<form method=\"post\"><button type=\"submit\">{verb} s ask</button></form>"
                ),
                "&lt;script&gt;alert(1)&lt;/script&gt;",
                "token: &quot;&amp;amp;&quot;",
                "<dt>Masked parts</dt><dd>1</dd>",
            ] {
                assert!(page.body.contains(part), "{part}: {}", page.body);
            }
            assert!(!page.body.contains("sesame"), "{}", page.body);
            // Its own address is a secret, and the page does not repeat it.
            assert!(!page.body.contains(path.rsplit('.').next().unwrap()), "{}", page.body);
        }
    }
    let head = send(&hub, "HEAD", &approve, &[]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("referrer-policy"), Some("no-referrer"));
    let id = hub.pending(1).remove(0);
    assert_eq!(hub.ruling(&id), None, "nothing was decided by reading");
    // A page of another site has the browser send no form of its own.
    assert_eq!(send(&hub, "POST", &approve, &[&BUTTON[..1], &BUTTON[2..]].concat()).status, 403);
    let done = send(&hub, "POST", &approve, &BUTTON);
    assert_eq!(done.status, 200, "{}", done.body);
    is_inert(&done);
    assert!(done.body.contains("<h1>The call is approved.</h1>"), "{}", done.body);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(hub.ruling(&id), Some((ApprovalOutcome::Approved, "hook".to_owned())));
    // Once.
    for path in [&approve, &deny] {
        let again = send(&hub, "POST", path, &BUTTON);
        assert_eq!(again.status, 409, "{}", again.body);
        is_inert(&again);
        let page = send(&hub, "GET", path, &[]);
        assert_eq!(page.status, 410, "{}", page.body);
        assert!(page.body.contains("it is approved") && !page.body.contains("<form"));
    }
}

#[test]
fn a_link_that_was_changed_shows_nothing_of_the_call() {
    let hooks = receiver("200 OK");
    let (hub, mut run, [approve, deny]) = asked(&hooks, "", r#"{"path":"/srv/data"}"#);
    for wrong in [
        approve.replace(".approve.", ".deny."),
        approve[..approve.len() - 1].to_owned(),
        approve.replace(".hook.", ".other."),
    ] {
        let page = send(&hub, "GET", &wrong, &[]);
        assert_eq!(page.status, 403, "{}", page.body);
        is_inert(&page);
        assert!(!page.body.contains("/srv/data"), "{}", page.body);
    }
    let done = send(&hub, "POST", &deny, &BUTTON);
    assert!(done.body.contains("<h1>The call is denied.</h1>"), "{}", done.body);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    run.close_input();
}
