//! Descriptions of rule actions, with their values for a request.

use weir_config::snapshot::Snapshot;
use weir_core::expression::{Evaluation, Template};
use weir_core::policy::{Action, CredentialsKind, FieldAction, FieldChange, PoolChoice, Rewrite};

use crate::masks::Masks;

/// The description of an action, in the words of the configuration.
pub fn told(
    action: &Action,
    snapshot: &Snapshot,
    evaluation: &mut Evaluation<'_>,
    masks: &Masks,
) -> String {
    match action {
        Action::Pool(PoolChoice::One(pool)) => format!("pool: {}", pool_name(snapshot, *pool)),
        Action::Pool(PoolChoice::Split(split)) => {
            let pools: Vec<&str> =
                split.pools().map(|pool| pool_name(snapshot, pool as u32)).collect();
            format!("pool: one of {}, by weight", pools.join(", "))
        }
        Action::Member(label) => format!("member: {label}"),
        Action::Persistence(None) => "persistence: off".into(),
        Action::Persistence(Some(index)) => {
            let found = snapshot.persistence.get(*index as usize);
            format!("persistence: {}", found.map_or("", |it| &it.name))
        }
        Action::RateLimit(index) => {
            let found = snapshot.key_limits.get(*index as usize);
            format!("rate_limit: {}", found.map_or("", |it| &it.name))
        }
        Action::RewritePath(how) => rewrite("rewrite_path", how, evaluation, masks),
        Action::RewriteQuery(how) => rewrite("rewrite_query", how, evaluation, masks),
        Action::RewriteHost(how) => rewrite("rewrite_host", how, evaluation, masks),
        Action::RemoveCookies(names) => {
            let names: Vec<String> = names.iter().map(|name| masks.text(name)).collect();
            format!("remove_cookie: {}", names.join(", "))
        }
        Action::RequestField(field) => field_told("header", field, evaluation, masks),
        Action::ResponseField(field) => field_told("response_header", field, evaluation, masks),
        Action::SetCookie(cookie) => {
            let name = cookie.before.strip_suffix(b"=").unwrap_or(&cookie.before);
            format!("set_cookie: {}", masks.text(name))
        }
        Action::CookieAttributes(_) => "cookie_attributes".into(),
        Action::ReplaceBody(_) => "replace_response_body".into(),
        Action::LeaveUncompressed => "compression: off".into(),
        Action::Inspection(mode) => format!("waf: {}", mode.name()),
        Action::Log(text) => format!("log: {}", rendered(text, evaluation, masks)),
        Action::Trace(text) => format!("trace: {}", rendered(text, evaluation, masks)),
        Action::Authenticate(by) => {
            let how = match &by.how {
                CredentialsKind::Token { .. } => "by a token",
                CredentialsKind::Password(_) => "by a password",
            };
            format!("authenticate: {} ({how})", by.name)
        }
        Action::Subrequest(subrequest) => {
            subrequest.told(pool_name(snapshot, subrequest.pool() as u32))
        }
        Action::Answer(answer) => {
            let location = answer.fields.iter().find(|it| it.0.eq_ignore_ascii_case("location"));
            match location {
                Some((_, to)) => {
                    format!("redirect: {} to {}", answer.status, rendered(to, evaluation, masks))
                }
                None => format!("respond: {}", answer.status),
            }
        }
        Action::VirtualServer(to) => {
            let found = snapshot.virtual_servers.get(*to as usize);
            format!("virtual_server: {}", found.map_or("", |it| &it.name))
        }
        Action::Close => "close".into(),
        Action::Reset => "reset".into(),
    }
}

fn pool_name(snapshot: &Snapshot, pool: u32) -> &str {
    snapshot.pools.get(pool as usize).map_or("", |pool| &pool.name)
}

/// The text of a template. Parts that read the response are unknown yet.
fn rendered(template: &Template, evaluation: &mut Evaluation<'_>, masks: &Masks) -> String {
    if template.reads_response() {
        return "(as the response says)".into();
    }
    let mut text = Vec::new();
    evaluation.render(template, &mut text);
    masks.target(&text)
}

fn rewrite(name: &str, how: &Rewrite, evaluation: &mut Evaluation<'_>, masks: &Masks) -> String {
    match how {
        Rewrite::Text(to) => format!("{name}: {}", rendered(to, evaluation, masks)),
        Rewrite::Pattern(_) => format!("{name}: by a regular expression"),
    }
}

fn field_told(
    what: &str,
    FieldAction { name, change }: &FieldAction,
    evaluation: &mut Evaluation<'_>,
    masks: &Masks,
) -> String {
    let value = |template: &Template, evaluation: &mut Evaluation<'_>| {
        if template.reads_response() {
            return "(as the response says)".into();
        }
        let mut text = Vec::new();
        evaluation.render(template, &mut text);
        masks.field(name.as_bytes(), &text)
    };
    match change {
        FieldChange::Set(to) => format!("set_{what}: {name}: {}", value(to, evaluation)),
        FieldChange::Add(to) => format!("add_{what}: {name}: {}", value(to, evaluation)),
        FieldChange::Remove => format!("remove_{what}: {name}"),
        FieldChange::RemovePrefix => format!("remove_{what}: {name}*"),
        FieldChange::Rewrite(_) => format!("rewrite_{what}: {name}"),
    }
}
