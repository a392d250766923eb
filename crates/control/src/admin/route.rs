//! An operation of the API: its rights, its input and its output. The router and the OpenAPI document
//! ([`super::openapi`]) are generated from the same list of operations, so they cannot differ.

use std::pin::Pin;

use axum::Extension;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use weir_compression::{Coding, accept_encoding};
use weir_config::snapshot::Role;

use super::answer::{Answer, JSON};
use super::ask::{Ask, Parameter, Query, path_parameters};
use super::peer::{Caller, Peer};
use super::problem::Problem;
use super::streams::{self, Producer};
use super::tags::Tags;
use super::{Context, login, off_thread};

/// Maximum size of a request's body, unless the route permits more.
pub const BODY_SIZE_MAX: usize = 4 * 1024;

/// The result of a handler.
pub(super) type HandlerResult = Result<Answer, Problem>;

/// How a handler runs.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// On another thread: with thousands of members it takes milliseconds, which would delay the monitors.
    Compute(fn(&Ask) -> HandlerResult),
    /// Asynchronously: it waits for other parts of weir.
    Wait(fn(Ask) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>>),
    /// One event at a time, as long as the client reads.
    Stream(fn(Ask) -> Result<Producer, Problem>),
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// No body (reads).
    None,
    /// A JSON document with this schema.
    Document(SchemaOf),
}

/// A function that returns the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The content of a successful answer.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// A JSON document with this schema.
    Document(SchemaOf),
    /// The OpenAPI document.
    OpenApi,
    /// Text of this media type.
    Text(&'static str),
    /// Events: their names, and the schemas of their data.
    Events(&'static [(&'static str, SchemaOf)]),
}

/// An operation of the API.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) is_change: bool,
    method: MethodFilter,
    pub(super) method_name: &'static str,
    pub(super) path: &'static str,
    /// The operation id for generated clients.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// The required role; `None`: no credentials are needed.
    pub(super) role: Option<Role>,
    pub(super) query: &'static [Parameter],
    pub(super) body: Body,
    body_bytes_max: usize,
    pub(super) content: Content,
    /// Possible statuses, in addition to those of all routes.
    pub(super) statuses: &'static [StatusCode],
    run: Run,
}

impl Route {
    fn new(path: &'static str, id: &'static str, summary: &'static str, run: Run) -> Self {
        Self {
            is_change: false,
            method: MethodFilter::GET,
            method_name: "get",
            path,
            id,
            summary,
            role: Some(Role::Read),
            query: &[],
            body: Body::None,
            body_bytes_max: BODY_SIZE_MAX,
            content: Content::Text("text/plain"),
            statuses: &[],
            run,
        }
    }

    /// A read.
    pub(super) fn get(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        compute: fn(&Ask) -> HandlerResult,
    ) -> Self {
        Self::new(path, id, summary, Run::Compute(compute))
    }

    /// A read that waits for other parts of weir.
    pub(super) fn get_later(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        wait: fn(Ask) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>>,
    ) -> Self {
        Self::new(path, id, summary, Run::Wait(wait))
    }

    /// A stream of events with these names and data; the event `end` is added. `begin` must return at once, because it runs on
    /// the thread of the monitors.
    pub(super) fn stream(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        events: &'static [(&'static str, SchemaOf)],
        begin: fn(Ask) -> Result<Producer, Problem>,
    ) -> Self {
        Self {
            content: Content::Events(events),
            statuses: &[StatusCode::SERVICE_UNAVAILABLE],
            ..Self::new(path, id, summary, Run::Stream(begin))
        }
    }

    /// A change by PUT, which replaces a resource and is idempotent.
    pub(super) fn put(self) -> Self {
        Self { is_change: true, method: MethodFilter::PUT, method_name: "put", ..self }
    }

    /// A change by POST.
    pub(super) fn post(self) -> Self {
        Self { is_change: true, method: MethodFilter::POST, method_name: "post", ..self }
    }

    /// Requires this role.
    pub(super) fn role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// Requires no credentials.
    pub(super) fn for_all(self) -> Self {
        Self { role: None, ..self }
    }

    pub(super) fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    /// Sets the type of the body.
    pub(super) fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Body::Document(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// Sets the maximum size of the body.
    pub(super) fn at_most(self, body_bytes_max: usize) -> Self {
        Self { body_bytes_max, ..self }
    }

    /// Sets the type of the answer.
    pub(super) fn answers<T: JsonSchema>(self) -> Self {
        Self { content: Content::Document(SchemaGenerator::subschema_for::<T>), ..self }
    }

    pub(super) fn content(self, content: Content) -> Self {
        Self { content, ..self }
    }

    /// Adds possible statuses.
    pub(super) fn statuses(self, statuses: &'static [StatusCode]) -> Self {
        Self { statuses, ..self }
    }

    /// The method router of the operation.
    pub(super) fn routing(self) -> MethodRouter<Context> {
        let handler = move |State(context): State<Context>,
                            Extension(caller): Extension<Caller>,
                            path: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request| async move {
            let answered = self.answer(context, caller, path, request).await;
            answered.unwrap_or_else(Problem::into_response)
        };
        on(self.method, handler)
    }

    async fn answer(
        self,
        context: Context,
        caller: Caller,
        path: Result<RawPathParams, RawPathParamsRejection>,
        request: Request,
    ) -> Result<Response, Problem> {
        self.check_role(&caller, &context)?;
        let (mut parts, body) = request.into_parts();
        self.check_accept(&parts.headers)?;
        let path = path_parameters(path)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default(), self.query)?;
        let body = match self.body {
            Body::None => axum::body::Bytes::new(),
            Body::Document(_) => {
                check_media_type(&parts.headers)?;
                read_body(body, self.body_bytes_max).await?
            }
        };
        let if_match = Tags::of(&parts.headers, &header::IF_MATCH);
        let if_none_match = Tags::of(&parts.headers, &header::IF_NONE_MATCH);
        let takes_gzip = takes_gzip(&parts.headers);
        let ask = Ask { context, caller, path, query, body, if_match, takes_gzip };
        let is_view = !self.is_change;
        let answer = match self.run {
            Run::Compute(compute) => {
                off_thread(move || compute(&ask).map(|answer| answer.tagged(is_view))).await?
            }
            Run::Wait(wait) => wait(ask).await.map(|answer| answer.tagged(is_view)),
            Run::Stream(begin) => {
                return streams::answer(ask, self.role, parts.extensions.remove(), begin);
            }
        }?;
        let is_known = |tags: Tags| answer.tag.as_ref().is_some_and(|tag| tags.have(tag));
        Ok(match if_none_match.filter(|_| is_view).is_some_and(is_known) {
            true => answer.into_not_modified(),
            false => answer.into_response(),
        })
    }

    fn check_role(&self, caller: &Caller, context: &Context) -> Result<(), Problem> {
        let Some(needed) = self.role else { return Ok(()) };
        let role = caller.role;
        if role.is_some_and(|role| role >= needed) {
            return Ok(());
        }
        if let (Some(user), Some(role)) = (&caller.user, role) {
            let detail = format_args!("this needs the role {needed}; {user} has the role {role}");
            let help = "roles are in the configuration, under `admin.users`";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).help(help));
        }
        if caller.is_stranger {
            let Context { observed, events } = context;
            return Err(login::refuse_stranger(observed, events, &caller.peer));
        }
        let has_users = !context.observed.table().snapshot.admin.users.is_empty();
        let is_loopback = matches!(&caller.peer, Peer::Network(peer) if peer.is_loopback);
        if is_loopback && !has_users {
            let detail = "TCP is read-only without a token, because weir cannot know the user";
            let help = "use a unix socket, which belongs to weir's user: \
                        `admin: { listen: unix:/run/weir/admin.sock }`, or give users tokens: `weir token new`";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).help(help));
        }
        let detail = format_args!("this needs a user with the role {needed}");
        Err(Problem::unauthenticated(detail)
            .help("send `Authorization: Bearer TOKEN`, or a client certificate"))
    }

    /// Checks `Accept`. Probes and metrics answer with their text in any case.
    fn check_accept(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let is_json = matches!(self.content, Content::Document(_) | Content::OpenApi);
        let mut fields = headers.get_all(header::ACCEPT).iter().peekable();
        if !is_json || fields.peek().is_none() || fields.any(|field| takes_json(field.as_bytes())) {
            return Ok(());
        }
        let detail = "the answer is `application/json`, which `Accept` excludes";
        Err(Problem::new(StatusCode::NOT_ACCEPTABLE, detail))
    }
}

/// Whether `Accept-Encoding` prefers gzip to no coding.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(header::ACCEPT_ENCODING).iter().map(HeaderValue::as_bytes);
    accept_encoding(fields, &[Coding::Gzip]).coding().is_some()
}

/// Whether a range in `Accept` includes JSON.
fn takes_json(field: &[u8]) -> bool {
    String::from_utf8_lossy(field).split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let is_refused = parts.any(|parameter| {
            let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
            value.is_some_and(|value| value.parse::<f32>().is_ok_and(|quality| quality == 0.0))
        });
        !is_refused && matches!(kind.as_str(), "*/*" | "application/*" | JSON)
    })
}

/// Checks the media type of changes: a page of another origin cannot send this one without permission.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|value| value.split(';').next()).map(str::trim);
    if essence.is_some_and(|essence| essence.eq_ignore_ascii_case(JSON)) {
        return Ok(());
    }
    let detail = "a change needs `Content-Type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

async fn read_body(body: axum::body::Body, bytes_max: usize) -> Result<axum::body::Bytes, Problem> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format_args!("the body has at most {bytes_max} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
        }
        Err(error) => Err(Problem::bad_request(format_args!("the body cannot be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_ranges() {
        for (field, expected) in [
            ("*/*", true),
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/html, application/*;q=0.1", true),
            ("text/html", false),
            ("application/json;q=0", false),
            ("application/json;q=0.0, */*", true),
            ("", false),
        ] {
            assert_eq!(takes_json(field.as_bytes()), expected, "{field:?}");
        }
    }
}
