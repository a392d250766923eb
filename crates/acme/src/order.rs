//! One order for a certificate: the account, the proofs, the certificate chain (RFC 8555 section 7.4).
//!
//! weir stores an order and its key as soon as the authority has accepted it, before any proof. If the process ends or hands
//! over, the next process continues this order and does not create a second one.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::BASE64URL_NOPAD;
use instant_acme::{
    Account, AccountCredentials, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier,
    ChallengeStatus, ChallengeType, Error, ExternalAccountKey, Identifier, NewAccount, NewOrder,
    Order, OrderStatus, Problem, RetryPolicy,
};
use serde::{Deserialize, Serialize};
use weir_config::snapshot::{Acme, AcmeChallenge};
use weir_tls::CertificateDer;
use weir_tls::challenges::{Challenges, PendingChallenge};

use super::client::{Authority, NoAnswer};
use super::keys;
use super::plan::Window;
use super::store::{PendingOrder, Progress, Proof, Store};

/// How an order is polled: at once, then after growing pauses.
pub const POLLS: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(120));
/// Maximum size of a reason in bytes: authorities quote requests.
const REASON_BYTES_MAX: usize = 600;
const PROBLEM: &str = "urn:ietf:params:acme:error:";

/// Problems that end no order: the same request can succeed later.
const TRANSIENT: [&str; 3] = ["badNonce", "rateLimited", "serverInternal"];

/// The state that all orders at one authority share.
#[derive(Clone)]
pub struct Orders {
    /// The settings.
    pub settings: Arc<Acme>,
    /// The files of this authority.
    pub store: Store,
    /// The connections to the authority.
    pub authority: Authority,
    /// The answers to challenges, as workers read them.
    pub challenges: Arc<Challenges>,
    /// How an order is polled.
    pub polls: RetryPolicy,
}

/// An issued certificate, in PEM.
pub struct IssuedCertificate {
    /// The certificate and its chain.
    pub chain: String,
    /// The private key.
    pub key: String,
}

/// The reason why there is no certificate.
#[derive(Debug)]
pub struct OrderFailure {
    /// The reason, as text.
    pub reason: String,
    /// The order has failed for good: a new one is needed.
    pub is_final: bool,
    /// The pause that the authority asks for.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for OrderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl OrderFailure {
    /// The order can go on later.
    pub fn on_the_way(reason: impl fmt::Display) -> Self {
        Self { reason: clip(reason.to_string()), is_final: false, retry_after: None }
    }

    /// The order is over.
    pub fn at_last(reason: impl fmt::Display) -> Self {
        Self { is_final: true, ..Self::on_the_way(reason) }
    }
}

impl From<Error> for OrderFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) if is_transient(&problem) => Self::on_the_way(told(&problem)),
            Error::Api(problem) => Self::at_last(told(&problem)),
            Error::Timeout(next) => Self {
                retry_after: next.map(|next| next.saturating_duration_since(Instant::now())),
                ..Self::on_the_way("the authority has not decided in time")
            },
            Error::Json(error) => {
                Self::on_the_way(format_args!("an answer that ACME does not have: {error}"))
            }
            other => Self::on_the_way(other),
        }
    }
}

/// The account as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptAccount {
    credentials: AccountCredentials,
    email: Option<String>,
}

impl Orders {
    /// The same for one operation: a pause that the authority asks for applies to that operation alone.
    pub fn for_one(&self) -> Self {
        Self { authority: self.authority.for_one(), ..self.clone() }
    }

    /// Gets a certificate. An order that the authority has taken is kept in `progress`. `replaced`: the certificate in use.
    pub async fn obtain(
        &self,
        names: &[String],
        progress: &mut Progress,
        replaced: Option<&CertificateDer<'static>>,
    ) -> Result<IssuedCertificate, OrderFailure> {
        let account = self.account().await?;
        let (mut order, key) = match self.pending(&account, names, progress).await? {
            Some(found) => found,
            None => self.begin(&account, names, progress, replaced).await?,
        };
        if order.state().status == OrderStatus::Pending {
            self.prove(&mut order, names, progress).await?;
        }
        if order.state().status == OrderStatus::Ready {
            let request = keys::request(names, &key).map_err(OrderFailure::at_last)?;
            order.finalize_csr(&request).await?;
        }
        let chain = order.poll_certificate(&self.polls).await?;
        Ok(IssuedCertificate { chain, key })
    }

    /// The authority's renewal window for this certificate, and the time of the next query; `None`: the authority offers no
    /// windows, or there is no account yet.
    pub async fn window(
        &self,
        certificate: &CertificateDer<'static>,
    ) -> Result<Option<(Window, Duration)>, OrderFailure> {
        let Some(kept) = self.kept_account()? else { return Ok(None) };
        let Ok(id) = CertificateIdentifier::try_from(certificate) else { return Ok(None) };
        let account = self.restored(kept.credentials).await?;
        match account.renewal_info(&id).await {
            Ok((info, pause)) => {
                let window = Window {
                    start_unix_s: info.suggested_window.start.unix_timestamp(),
                    end_unix_s: info.suggested_window.end.unix_timestamp(),
                };
                Ok(Some((window, pause)))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn kept_account(&self) -> Result<Option<KeptAccount>, OrderFailure> {
        self.store.account().map_err(OrderFailure::on_the_way)
    }

    async fn restored(&self, credentials: AccountCredentials) -> Result<Account, OrderFailure> {
        let builder = Account::builder_with_http(Box::new(self.authority.clone()));
        Ok(builder.from_credentials(credentials).await?)
    }

    /// The account: the stored one, or a new one.
    async fn account(&self) -> Result<Account, OrderFailure> {
        let email = &self.settings.email;
        let contact = email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        let Some(kept) = self.kept_account()? else { return self.new_account(&contact).await };
        let stored = serde_json::to_value(&kept.credentials).map_err(OrderFailure::on_the_way)?;
        let account = self.restored(kept.credentials).await?;
        if kept.email == *email {
            return Ok(account);
        }
        account.update_contacts(&contact).await.map_err(|error| self.unknown_account(error))?;
        let credentials = serde_json::from_value(stored).map_err(OrderFailure::on_the_way)?;
        self.keep_account(credentials)?;
        Ok(account)
    }

    async fn new_account(&self, contact: &[&str]) -> Result<Account, OrderFailure> {
        let external = match &self.settings.external {
            None => None,
            Some(external) => {
                let key = BASE64URL_NOPAD.decode(external.key.expose().as_bytes());
                let key = key.map_err(|_| {
                    OrderFailure::at_last("the key of `acme.external_account` is not base64url")
                })?;
                Some(ExternalAccountKey::new(external.id.clone(), &key))
            }
        };
        let builder = Account::builder_with_http(Box::new(self.authority.clone()));
        let wanted =
            NewAccount { contact, terms_of_service_agreed: true, only_return_existing: false };
        let directory = self.settings.directory.to_string();
        let (account, credentials) = builder.create(&wanted, directory, external.as_ref()).await?;
        self.keep_account(credentials)?;
        Ok(account)
    }

    fn keep_account(&self, credentials: AccountCredentials) -> Result<(), OrderFailure> {
        let kept = KeptAccount { credentials, email: self.settings.email.clone() };
        let written = self.store.keep_account(&kept);
        written.map_err(|error| {
            OrderFailure::on_the_way(format_args!("the account cannot be kept: {error}"))
        })
    }

    /// Deletes an account that the authority does not know. The next attempt registers a new one.
    fn unknown_account(&self, error: Error) -> OrderFailure {
        let is_unknown =
            matches!(&error, Error::Api(problem) if is(problem, "accountDoesNotExist"));
        let mut failed = OrderFailure::from(error);
        if is_unknown && let Err(error) = self.store.forget_account() {
            failed.reason = format!("{}; and its file cannot be removed: {error}", failed.reason);
        }
        failed
    }

    /// The order that is under way, if the authority still has it. An authority that cannot say so now is asked later:
    /// another order would be one too many.
    async fn pending(
        &self,
        account: &Account,
        names: &[String],
        progress: &mut Progress,
    ) -> Result<Option<(Order, String)>, OrderFailure> {
        let Some(PendingOrder { url, key_pem, proofs }) = progress.order.clone() else {
            return Ok(None);
        };
        let mut order = match account.order(url.clone()).await {
            Ok(order) => order,
            Err(Error::Api(problem)) if !is_transient(&problem) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let status = order.state().status;
        if status == OrderStatus::Invalid {
            return Ok(None);
        }
        if keys::is_of_kind(&key_pem, self.settings.key) {
            return Ok(Some((order, key_pem)));
        }
        // The configuration asks for another kind of key since. A certificate for the old one is no longer wanted.
        if !matches!(status, OrderStatus::Pending | OrderStatus::Ready) {
            return Ok(None);
        }
        let key_pem = self.new_key().await?;
        progress.order = Some(PendingOrder { url, key_pem: key_pem.clone(), proofs });
        self.keep_progress(names, progress)?;
        Ok(Some((order, key_pem)))
    }

    async fn new_key(&self) -> Result<String, OrderFailure> {
        let kind = self.settings.key;
        let key = tokio::task::spawn_blocking(move || keys::generate(kind)).await;
        key.map_err(OrderFailure::on_the_way)?.map_err(OrderFailure::on_the_way)
    }

    async fn begin(
        &self,
        account: &Account,
        names: &[String],
        progress: &mut Progress,
        replaced: Option<&CertificateDer<'static>>,
    ) -> Result<(Order, String), OrderFailure> {
        let key = self.new_key().await?;
        let identifiers: Vec<Identifier> =
            names.iter().map(|name| Identifier::Dns(name.clone())).collect();
        let wanted = || {
            let wanted = NewOrder::new(&identifiers);
            match &self.settings.profile {
                Some(profile) => wanted.profile(profile),
                None => wanted,
            }
        };
        let replaced = replaced.and_then(|it| CertificateIdentifier::try_from(it).ok());
        let order = match replaced {
            None => account.new_order(&wanted()).await,
            // If the authority refuses `replaces`, the order is sent without it.
            Some(id) => match account.new_order(&wanted().replaces(id)).await {
                Ok(order) => Ok(order),
                Err(error) if may_have_no_hint(&error) => account.new_order(&wanted()).await,
                Err(error) => Err(error),
            },
        };
        let order = order.map_err(|error| self.unknown_account(error))?;
        let (url, key_pem) = (order.url().to_owned(), key.clone());
        progress.order = Some(PendingOrder { url, key_pem, proofs: Vec::new() });
        self.keep_progress(names, progress)?;
        Ok((order, key))
    }

    /// Stores the state of the orders for these names.
    pub fn keep_progress(&self, names: &[String], progress: &Progress) -> Result<(), OrderFailure> {
        let kept = self.store.keep_progress(&super::board::sorted(names), progress);
        kept.map_err(|error| {
            let folder = self.store.folder().display();
            OrderFailure::on_the_way(format_args!("the order cannot be kept in {folder}: {error}"))
        })
    }

    /// Proves that weir serves the names of an order.
    async fn prove(
        &self,
        order: &mut Order,
        names: &[String],
        progress: &mut Progress,
    ) -> Result<(), OrderFailure> {
        let mut answered: Vec<PendingChallenge> = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                status => {
                    let name = authorization.identifier().to_string();
                    return Err(OrderFailure::at_last(format_args!("{name} is {status:?}")));
                }
            }
            answered.push(self.answer(&mut authorization, names, progress).await?);
        }
        let judged = order.poll_ready(&self.polls).await;
        drop(answered);
        match judged {
            Ok(OrderStatus::Invalid) | Err(Error::Api(_)) => {
                let fallback = judged.err().map(OrderFailure::from);
                Err(refusals(order).await.or(fallback).unwrap_or_else(|| {
                    OrderFailure::at_last("the authority refuses the order, and does not say why")
                }))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Publishes the answer to the challenge for a name, and asks the authority to check it.
    async fn answer<'a>(
        &self,
        of: &'a mut AuthorizationHandle<'a>,
        names: &[String],
        progress: &mut Progress,
    ) -> Result<PendingChallenge, OrderFailure> {
        let name = of.identifier().to_string();
        let kind = match self.settings.challenge {
            AcmeChallenge::Http01 => ChallengeType::Http01,
            AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        };
        let Some(mut challenge) = of.challenge(kind) else {
            let kind = self.settings.challenge.as_str();
            let what = format_args!("the authority does not offer {kind} for {name}");
            return Err(OrderFailure::at_last(what));
        };
        let token = challenge.token.clone();
        let key_authorization = challenge.key_authorization().as_str().to_owned();
        let proof = Proof { name, token, key_authorization };
        let answered = answering(&self.challenges, self.settings.challenge, &proof)?;
        if let Some(order) = progress.order.as_mut().filter(|it| !it.proofs.contains(&proof)) {
            order.proofs.push(proof);
            self.keep_progress(names, progress)?;
        }
        // An order that goes on after a restart may be past this.
        if challenge.status == ChallengeStatus::Pending {
            challenge.set_ready().await?;
        }
        Ok(answered)
    }
}

/// Answers a challenge from now on.
pub fn answering(
    challenges: &Arc<Challenges>,
    kind: AcmeChallenge,
    proof: &Proof,
) -> Result<PendingChallenge, OrderFailure> {
    match kind {
        AcmeChallenge::Http01 => Ok(challenges.add_text(&proof.token, &proof.key_authorization)),
        AcmeChallenge::TlsAlpn01 => {
            let digest = digest(&SHA256, proof.key_authorization.as_bytes());
            let digest = <&[u8; 32]>::try_from(digest.as_ref()).map_err(OrderFailure::at_last)?;
            let made = keys::challenge(&proof.name, digest, SystemTime::now());
            let (certificate, key) = made.map_err(OrderFailure::on_the_way)?;
            let added = challenges.add_handshake(&proof.name, certificate, key);
            added.map_err(OrderFailure::on_the_way)
        }
    }
}

/// Answers the challenges of an order that another process has begun. What cannot be answered yet is answered when the order
/// goes on, or the order says why not.
pub fn answering_all(
    challenges: &Arc<Challenges>,
    kind: AcmeChallenge,
    progress: &Progress,
) -> Vec<PendingChallenge> {
    let proofs = progress.order.iter().flat_map(|order| &order.proofs);
    proofs.filter_map(|proof| answering(challenges, kind, proof).ok()).collect()
}

/// The authority's errors about the proofs of an order.
async fn refusals(order: &mut Order) -> Option<OrderFailure> {
    let mut told_of = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = authorization.identifier().to_string();
        let problems = authorization.challenges.iter().filter_map(|it| it.error.as_ref());
        told_of.extend(problems.map(|problem| format!("{name}: {}", told(problem))));
    }
    (!told_of.is_empty()).then(|| OrderFailure::at_last(told_of.join("; ")))
}

/// Whether an order can succeed without the certificate that it replaces. Not if the authority did not answer, or is busy: it
/// could have taken the order, or refuses the other one as well.
fn may_have_no_hint(error: &Error) -> bool {
    match error {
        Error::Api(problem) => !is_transient(problem) && !is(problem, "accountDoesNotExist"),
        Error::Other(error) => !error.is::<NoAnswer>(),
        Error::Unsupported(_) => true,
        _ => false,
    }
}

/// Whether the same request can succeed later.
fn is_transient(problem: &Problem) -> bool {
    problem.status.is_some_and(|status| status >= 500)
        || TRANSIENT.iter().any(|kind| is(problem, kind))
}

/// Whether a problem has this type.
fn is(problem: &Problem, kind: &str) -> bool {
    problem.r#type.as_deref().and_then(|it| it.strip_prefix(PROBLEM)) == Some(kind)
}

/// A problem in one line.
fn told(problem: &Problem) -> String {
    let kind = problem.r#type.as_deref().unwrap_or("no type");
    let kind = kind.strip_prefix(PROBLEM).unwrap_or(kind);
    let mut text = match &problem.detail {
        Some(detail) => format!("{detail} ({kind})"),
        None => kind.to_owned(),
    };
    for sub in &problem.subproblems {
        if let Some(detail) = &sub.detail {
            text += &format!("; {detail}");
        }
    }
    text
}

/// Removes control characters from a reason and limits its length, because it comes from outside.
fn clip(reason: String) -> String {
    let plain = |it: char| if it.is_control() { ' ' } else { it };
    let mut reason: String = reason.chars().map(plain).collect();
    if reason.len() > REASON_BYTES_MAX {
        let end = (0..=REASON_BYTES_MAX).rev().find(|end| reason.is_char_boundary(*end));
        reason.truncate(end.unwrap_or(0));
        reason.push('…');
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Problem {
        serde_json::from_str(text).expect("a problem")
    }

    #[test]
    fn problems_in_one_line() {
        for (given, expected) in [
            (
                r#"{"type":"urn:ietf:params:acme:error:dns","detail":"no such name"}"#,
                "no such name (dns)",
            ),
            (r#"{"type":"urn:ietf:params:acme:error:rateLimited"}"#, "rateLimited"),
            (r#"{"detail":"why"}"#, "why (no type)"),
            (r#"{"type":"about:blank","detail":"why"}"#, "why (about:blank)"),
        ] {
            assert_eq!(told(&problem(given)), expected);
        }
        let limited = problem(r#"{"type":"urn:ietf:params:acme:error:rateLimited"}"#);
        assert!(is(&limited, "rateLimited") && !is(&limited, "dns"));
    }

    #[test]
    fn busy_authorities_end_no_order() {
        let failed = |text: &str| OrderFailure::from(Error::Api(problem(text)));
        for (kind, is_final) in [
            ("badNonce", false),
            ("rateLimited", false),
            ("serverInternal", false),
            ("unauthorized", true),
            ("dns", true),
        ] {
            let text = format!(r#"{{"type":"{PROBLEM}{kind}"}}"#);
            assert_eq!(failed(&text).is_final, is_final, "{kind}");
            let has_other_try = may_have_no_hint(&Error::Api(problem(&text)));
            assert_eq!(has_other_try, is_final, "{kind}: an order without `replaces`");
        }
        assert!(!failed(r#"{"type":"about:blank","status":503}"#).is_final);
        assert!(may_have_no_hint(&Error::Unsupported("ARI")));
        let error = serde_json::from_str::<Problem>("<html>").expect_err("not JSON");
        assert!(!may_have_no_hint(&Error::Json(error)));
    }

    #[test]
    fn the_authority_says_when_it_will_have_decided() {
        let next = Instant::now() + Duration::from_secs(3_600);
        let failed = OrderFailure::from(Error::Timeout(Some(next)));
        assert!(failed.retry_after.is_some_and(|it| it > Duration::from_secs(3_500)), "{failed:?}");
        assert!(!failed.is_final);
    }

    #[test]
    fn reasons_are_short_and_plain() {
        assert_eq!(clip("a\nb\u{1b}[0m".into()), "a b [0m");
        let long = clip("é".repeat(1_000));
        assert!(long.len() <= REASON_BYTES_MAX + '…'.len_utf8() && long.ends_with("é…"), "{long}");
    }
}
