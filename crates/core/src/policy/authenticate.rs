//! The action `authenticate`.

use std::sync::Arc;

use weir_http::fields::forwarded_values;

use super::authenticator::{Authenticator, CredentialsKind, Login};
use super::decision::{AnswerBody, Decision, End, remove_cookies};
use crate::expression::{Evaluation, Facts};
use crate::jwt::{Refusal, TokenPlace};
use crate::passwords::Credentials;

impl Decision {
    /// Accepts the request, or ends it.
    pub(super) fn authenticate(
        &mut self,
        by: &Arc<Authenticator>,
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
    ) {
        match &by.how {
            CredentialsKind::Password(users) => {
                match Credentials::of(facts.request, facts.request_input) {
                    Some(credentials) => {
                        evaluation.set_user(&credentials.user);
                        if !by.forwards {
                            self.request.fields.remove(b"Authorization");
                        }
                        let (by, users) = (Arc::clone(by), Arc::clone(users));
                        self.authentication.logins.push(Login::new(by, users, credentials));
                    }
                    None => {
                        let why = (401, "there is no user with a password");
                        self.refuse(by, why, evaluation, || by.basic_challenge());
                    }
                }
            }
            CredentialsKind::Token { reader, place, user_claim } => match evaluation.token(*reader)
            {
                Ok(claims) => {
                    self.work.scratch.clear();
                    claims.write(user_claim, &mut self.work.scratch);
                    // If the token has no user name, the user of an earlier password stays.
                    if !self.work.scratch.is_empty() {
                        evaluation.set_user(&self.work.scratch);
                    }
                    if !by.forwards {
                        self.take_token_away(place, facts);
                    }
                }
                Err(refusal) => self.refuse_token(by, refusal, evaluation),
            },
        }
    }

    fn take_token_away(&mut self, place: &TokenPlace, facts: &Facts<'_>) {
        match place {
            TokenPlace::Authorization => self.request.fields.remove(b"Authorization"),
            TokenPlace::Header(name) => self.request.fields.remove(name.as_bytes()),
            TokenPlace::Cookie(name) => {
                let received =
                    forwarded_values(&facts.request.fields, facts.request_input, b"cookie");
                let is_it = |cookie: &[u8]| *cookie == *name.as_bytes();
                remove_cookies(&mut self.request.fields, received, &mut self.work.scratch, is_it);
            }
        }
    }

    /// As in RFC 6750 section 3: the response to a request without a token has no error code.
    fn refuse_token(
        &mut self,
        by: &Authenticator,
        refusal: Refusal,
        evaluation: &mut Evaluation<'_>,
    ) {
        let status = if refusal.is_own() { 503 } else { 401 };
        self.refuse(by, (status, refusal.text()), evaluation, || {
            let challenge = format!("Bearer realm=\"{}\"", by.realm);
            match refusal {
                Refusal::Missing => challenge,
                _ => {
                    let text = refusal.text();
                    format!("{challenge}, error=\"invalid_token\", error_description=\"{text}\"")
                }
            }
        });
    }

    /// Ends a request without valid credentials.
    fn refuse(
        &mut self,
        by: &Authenticator,
        (status, why): (u16, &str),
        evaluation: &mut Evaluation<'_>,
        challenge: impl FnOnce() -> String,
    ) {
        self.authentication.is_refused = true;
        if self.has_checks() {
            // Pending checks are dropped, and with them all decisions that depend on the user.
            self.authentication.logins.clear();
            self.subrequests.retain(|subrequest| !subrequest.is_check());
            evaluation.set_user(b"");
            self.later.clear();
        }
        self.later.marks.push(|out| {
            out.extend_from_slice(format!("authenticate {}: {why}", by.name).as_bytes());
        });
        if status == 401 {
            let challenge = challenge();
            self.answer.add(b"WWW-Authenticate", |out| out.extend_from_slice(challenge.as_bytes()));
        }
        self.end = Some(End::Answer { status, body: AnswerBody::None });
    }
}

#[cfg(test)]
mod tests {
    use weir_http::path::PathForm;

    use super::*;
    use crate::expression::testing::Sample;
    use crate::expression::{Condition, Purpose, Template};
    use crate::jwt::testing::Issuer;
    use crate::policy::{Action, Answer, Body, Policy, Rule, Rules, Strategy};

    const CLAIMS: &str = r#"{"exp":2000,"sub":"ann","name":"Ann"}"#;

    fn token(claims: &str) -> String {
        Issuer::ed(7).sign(r#"{"alg":"EdDSA"}"#, claims)
    }

    fn authenticator(reader: u32, user_claim: &str, forwards: bool) -> Action {
        Action::Authenticate(Arc::new(Authenticator {
            name: "api".into(),
            realm: "shop".into(),
            forwards,
            how: CredentialsKind::Token {
                reader,
                place: TokenPlace::Authorization,
                user_claim: user_claim.into(),
            },
        }))
    }

    fn answer(sample: &mut Sample) -> Action {
        let user = Template::compile("${request.user}", Purpose::HeaderValue, &mut sample.scope());
        let fields = vec![("X-User".into(), user.unwrap())];
        Action::Answer(Arc::new(Answer { status: 200, body: Body::None, fields }))
    }

    fn policy(strategy: Strategy, rules: Vec<(Option<Condition>, Vec<Action>)>) -> Arc<Policy> {
        let rules = rules.into_iter().map(|(condition, actions)| Rule {
            name: "a".into(),
            id: None,
            condition,
            actions,
        });
        let request = Rules::new(strategy, rules.collect());
        Arc::new(Policy { name: "p".into(), request, response: Vec::new() })
    }

    /// Status and fields of the answer; `None`: the request is accepted, with this user.
    fn follow(
        sample: &Sample,
        policies: &[Arc<Policy>],
    ) -> (Option<u16>, Vec<(String, String)>, String, Decision) {
        sample.evaluate(|evaluation| {
            let mut decision = Decision::default();
            let facts = sample.facts();
            decision.follow_request(policies, evaluation, &facts, PathForm::default()).unwrap();
            let status = match &decision.end {
                Some(End::Answer { status, .. }) => Some(*status),
                _ => None,
            };
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let fields = decision.answer.added().map(|(name, value)| (text(name), text(value)));
            (status, fields.collect(), text(evaluation.user()), decision)
        })
    }

    fn sample(authorization: &str) -> Sample {
        Sample::new(&format!("GET / HTTP/1.1\r\nHost: a\r\n{authorization}\r\n"))
    }

    #[test]
    fn strangers_are_answered_whatever_else_the_rule_does() {
        let good = format!("Authorization: Bearer {}\r\n", token(CLAIMS));
        let old = format!("Authorization: Bearer {}\r\n", token(r#"{"exp":999}"#));
        let expired = concat!(
            "Bearer realm=\"shop\", error=\"invalid_token\", ",
            "error_description=\"the token has expired\""
        );
        for (authorization, reader, status, challenge) in [
            (good.as_str(), 0, 200, None),
            ("", 0, 401, Some("Bearer realm=\"shop\"")),
            (old.as_str(), 0, 401, Some(expired)),
            // The token's reader has no keys: this is not the token's fault.
            (good.as_str(), 1, 503, None),
        ] {
            for strategy in [Strategy::FirstMatch, Strategy::AllMatch] {
                let mut sample = sample(authorization);
                let actions = vec![authenticator(reader, "sub", true), answer(&mut sample)];
                let policy = policy(strategy, vec![(None, actions)]);
                let (found, fields, user, decision) = follow(&sample, &[policy]);
                assert_eq!(found, Some(status), "{authorization}");
                assert_eq!(decision.authentication.is_refused, status != 200);
                assert_eq!(decision.later.marks.is_empty(), status == 200);
                let value = |name: &str| {
                    let field = fields.iter().find(|(known, _)| known == name);
                    field.map(|(_, value)| value.as_str())
                };
                assert_eq!(value("WWW-Authenticate"), challenge, "{authorization}");
                let expected = (status == 200).then_some("ann");
                assert_eq!(value("X-User"), expected, "{authorization}");
                assert_eq!(user, expected.unwrap_or_default());
            }
        }
    }

    #[test]
    fn later_rules_see_the_user_and_the_claims() {
        for (claim, condition, holds) in [
            ("sub", "request.user == 'ann'", true),
            ("name", "request.user == 'Ann'", true),
            ("none", "request.user == ''", true),
            ("sub", "jwt['api'].valid && jwt['api'].claims['name'] == 'Ann'", true),
            ("sub", "'name' in jwt['api'].claims && !('x' in jwt['api'].claims)", true),
            ("sub", "request.user == 'bob'", false),
        ] {
            let mut sample = sample(&format!("Authorization: Bearer {}\r\n", token(CLAIMS)));
            let when = Condition::compile(condition, &mut sample.scope()).unwrap();
            let let_in =
                policy(Strategy::FirstMatch, vec![(None, vec![authenticator(0, claim, true)])]);
            let answered = vec![(Some(when), vec![answer(&mut sample)])];
            let answered = policy(Strategy::FirstMatch, answered);
            let (status, ..) = follow(&sample, &[let_in, answered]);
            assert_eq!(status.is_some(), holds, "{condition}");
        }
        // No user is authenticated before the action.
        let mut sample = sample(&format!("Authorization: Bearer {}\r\n", token(CLAIMS)));
        let when = Condition::compile("request.user != ''", &mut sample.scope()).unwrap();
        let answered = policy(Strategy::FirstMatch, vec![(Some(when), vec![answer(&mut sample)])]);
        assert_eq!(follow(&sample, &[answered]).0, None);
    }

    #[test]
    fn a_token_can_be_kept_from_members() {
        for forwards in [true, false] {
            let sample = sample(&format!("Authorization: Bearer {}\r\n", token(CLAIMS)));
            let actions = vec![authenticator(0, "sub", forwards)];
            let policy = policy(Strategy::AllMatch, vec![(None, actions)]);
            let (status, _, _, decision) = follow(&sample, &[policy]);
            assert_eq!(status, None);
            assert_eq!(decision.request.fields.is_empty(), forwards);
        }
    }
}
