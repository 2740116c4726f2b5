//! The pages that people see who open a one-time link in a browser.
//!
//! Reading a page decides nothing: previews, scanners and prefetching browsers read links too. A page
//! shows the call and has one button, which sends the POST that decides. It runs no script, loads
//! nothing, cannot be framed, and names its own address to nobody.

use http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::Request;
use hyper::body::Incoming;
use tapegate_store::approvals::ApprovalState;
use tapegate_wire::http::origin_check::OriginRefusal;

use super::Hub;
use super::auth::single_header;
use super::response::{ApiBody, ApiRefusal, text_reply};
use super::route::{self, ApiRoute, RouteMatch};
use crate::api::{TaskAnswer, TaskStatus};
use crate::channels::ChannelRequest;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Nothing but a form that is sent back to the page's own address.
const POLICY: &str =
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

impl Hub {
    /// The page of a link: what is asked, and the button that decides.
    pub(super) fn link_page(&self, token: &str) -> Result<Response<ApiBody>, ApiRefusal> {
        let (link, request, _) = self.read_link(token)?;
        let entry = self.tasks.approvals.entry(link.id)?;
        let state = entry.state(self.asker_now_us(&request));
        if state != ApprovalState::Pending {
            let text = format!("This call can no longer be decided: it is {}.", state.as_str());
            return Ok(page(StatusCode::GONE, "This link is used up", &paragraph(&text)));
        }
        let shown = ChannelRequest::new(&request, None);
        let verb = if link.approve { "Approve" } else { "Deny" };
        Ok(page(StatusCode::OK, &format!("{verb} this call?"), &question(&shown, verb)))
    }
}

/// Whether the sender of a request to a link is a browser that shows the answer to a person.
pub(super) fn is_for_person(route: ApiRoute, headers: &HeaderMap) -> bool {
    let wants_html = || {
        let types = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        types.flat_map(|line| line.split(',')).any(|one| one.trim().starts_with("text/html"))
    };
    route == ApiRoute::LinkPage || (route == ApiRoute::Link && wants_html())
}

/// The page that tells what a person has decided.
pub(super) fn settled_page(answer: &TaskAnswer) -> Response<ApiBody> {
    let text = match answer.status {
        TaskStatus::Approved => "The call is approved.",
        TaskStatus::Rejected => "The call is denied.",
        TaskStatus::Pending => "Your approval counts. The call waits for that of another person.",
        TaskStatus::Expired | TaskStatus::Cancelled => "The call can no longer be decided.",
    };
    page(StatusCode::OK, text, &paragraph("You can close this page."))
}

/// The page that tells why a link cannot be used.
pub(super) fn refusal_page(refusal: &ApiRefusal) -> Response<ApiBody> {
    page(refusal.status(), "Nothing was decided", &paragraph(refusal.message()))
}

/// Whether a request that the origin check refuses may use a link all the same: a person who follows
/// it from another page, or who presses the button of ours. Browsers hide the origin of a form whose
/// page names its address to nobody.
pub(super) fn is_from_link(request: &Request<Incoming>, refusal: &OriginRefusal) -> bool {
    let headers = request.headers();
    let has = |name, expected: &[u8]| single_header(headers, name) == Some(expected);
    match (route::find(request.method(), request.uri().path()), refusal) {
        (RouteMatch::Route(ApiRoute::LinkPage, _), OriginRefusal::OtherSite(_)) => true,
        (RouteMatch::Route(ApiRoute::Link, _), OriginRefusal::Origin(_)) => {
            has(ORIGIN, b"null") && has(FETCH_SITE, b"same-origin")
        }
        _ => false,
    }
}

/// What is asked, with the button.
fn question(request: &ChannelRequest, verb: &str) -> String {
    let mut out = String::from("<dl>\n");
    let facts = [
        ("Server", &request.server),
        ("Tool", &request.tool),
        ("Method", &request.method),
        ("Asked by", &request.principal),
        ("Because", &request.reason),
        ("Workflow", &request.workflow),
        ("Folder", &request.folder),
        ("Until", &request.expires_at),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        out.push_str(&format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(value)));
    }
    let masked = request.masked_parts();
    if masked > 0 {
        out.push_str(&format!("<dt>Masked parts</dt><dd>{masked}</dd>\n"));
    }
    out.push_str(&format!("</dl>\n<pre>{}</pre>\n", escaped(&request.lines.join("\n"))));
    out.push_str(&paragraph("Nothing is decided until you press the button. It works once."));
    out.push_str(&format!(
        "<form method=\"post\"><button type=\"submit\">{verb} {}</button></form>\n",
        escaped(&request.title())
    ));
    out
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// A page with a title and a body, which is HTML already.
fn page(status: StatusCode, title: &str, body: &str) -> Response<ApiBody> {
    let title = escaped(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"robots\" content=\"noindex, nofollow\">\n\
         <title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    );
    let mut response = text_reply("text/html; charset=utf-8", html.into_bytes());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Text in which no character means anything to HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::sample_requests;

    #[test]
    fn no_text_of_a_call_is_markup() {
        for request in [sample_requests::hostile(), sample_requests::long()] {
            let html = question(&request, "Approve");
            let tags: Vec<&str> = html.split('<').skip(1).collect();
            let known = ["dl>", "/dl>", "dt>", "/dt>", "dd>", "/dd>", "pre>", "/pre>", "p>", "/p>"];
            let form = ["form method=\"post\">", "/form>", "button type=\"submit\">", "/button>"];
            let is_known = |tag: &&str| known.iter().chain(&form).any(|one| tag.starts_with(one));
            assert!(tags.iter().all(is_known), "{html}");
            assert!(!html.contains(['\u{202e}', '\u{1b}']), "{html}");
        }
    }
}
