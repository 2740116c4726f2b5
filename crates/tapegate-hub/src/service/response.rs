//! Responses, including errors.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Response, StatusCode};
use serde::Serialize;
use tapegate_wire::http::{RETRY_AFTER_S, ReplyBody};

use crate::api::{ErrorAnswer, ErrorBody};

/// The body of an API response. It carries no messages of a session, so any bytes are allowed.
pub(super) type ApiBody = ReplyBody<Bytes>;

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct ApiRefusal {
    status: StatusCode,
    code: &'static str,
    message_text: String,
}

impl ApiRefusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message_text: &str) -> Self {
        Self { status, code, message_text: message_text.to_owned() }
    }

    /// The error code, for programs.
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn message(&self) -> &str {
        &self.message_text
    }

    /// Whether the request was refused because of who sent it.
    pub(super) fn is_about_caller(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    pub(super) fn bad_request(message_text: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message_text)
    }

    pub(super) fn unauthorized() -> Self {
        let message = "the Authorization header must be `Bearer` followed by a token of this run";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn not_an_approver() -> Self {
        let message = "this request requires the approvers' token (hub-approver-token, or \
                     --approver-token-file); the shims' token does not allow it";
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(super) fn not_found(message_text: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message_text)
    }
}

impl From<ApiRefusal> for Response<ApiBody> {
    fn from(refusal: ApiRefusal) -> Self {
        let ApiRefusal { status, code, message_text: words } = refusal;
        let code = code.to_owned();
        let mut response = json(&ErrorAnswer { error: ErrorBody { code, message: words } });
        *response.status_mut() = status;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

/// The response to a method that the path does not support.
pub(super) fn method_not_allowed(method: &Method, allowed: Vec<&'static str>) -> Response<ApiBody> {
    let message = format!("method {method} not allowed; use {}", allowed.join(" or "));
    let refusal = ApiRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message);
    let mut response = Response::from(refusal);
    if let Ok(list) = HeaderValue::try_from(allowed.join(", ")) {
        response.headers_mut().insert(ALLOW, list);
    }
    response
}

pub(super) fn json(value: &impl Serialize) -> Response<ApiBody> {
    match serde_json::to_vec(value) {
        Ok(text) => text_reply("application/json", text),
        Err(error) => {
            let mut response = text_reply("text/plain", error.to_string().into_bytes());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

pub(super) fn text_reply(media_type: &'static str, text: Vec<u8>) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::from_whole(Bytes::from(text)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    // Answers hold policies, calls and their arguments.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
