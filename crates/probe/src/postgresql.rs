//! PostgreSQL: a login (protocol 3.0) and a query.
//!
//! <https://www.postgresql.org/docs/current/protocol.html>

use md5::{Digest as _, Md5};
use weir_config::snapshot::{Credentials, Secret, SqlProbe, SqlQuery};
use weir_core::monitor::ProbeOutcome;

use super::failure::{Failure, Step};
use super::probe_settings::ProbeSettings;
use super::scram;
use super::sql::judge;
use super::wire::{Wire, said};

const VERSION: u32 = 3 << 16;
const TLS_REQUEST: u32 = 80_877_103;
/// The user name if no user is configured.
const NOBODY: &str = "weir";
/// Error codes of a working server that refuses this user: unknown user, wrong password (both class 28), unknown database.
const NOT_FOR_US: [&[u8]; 2] = [b"28", b"3D000"];
/// Maximum number of messages until a login or a query has ended.
const MESSAGES_MAX: usize = 1_000;
/// Size of a message's length, which includes itself.
const LENGTH_BYTES: usize = 4;

/// Types of authentication requests. The first one reports a successful login.
const IS_IN: u32 = 0;
const PASSWORD: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Logs in and sends the query, if configured. Without a user, passes when the server requests authentication.
pub(super) async fn ask(
    talk: &ProbeSettings<'_>,
    probe: &SqlProbe,
) -> Result<ProbeOutcome, Failure> {
    let mut wire = Wire::open(talk, None).await?;
    if let Some(tls) = &probe.tls {
        wire.send(&[8_u32.to_be_bytes(), TLS_REQUEST.to_be_bytes()].concat()).await?;
        match wire.array().await? {
            [b'S'] => wire = wire.upgrade(tls).await?,
            [b'N'] => return Err(refused("the server has no TLS".into())),
            // A server that does not know the request sends an error.
            _ => return Err(malformed()),
        }
    }
    let mut session =
        Session { wire, secret: probe.user.as_ref().map(|user| user.password.clone()) };
    session.wire.step(Step::LoggingIn);
    session.wire.send(&startup(probe)).await?;
    let Some(user) = &probe.user else {
        return session.greeting().await;
    };
    session.log_in(user).await?;
    session.wire.step(Step::Listening);
    if let Some(query) = &probe.query {
        session.query(query).await?;
    }
    session.send(b'X', &[]).await?;
    Ok(ProbeOutcome::Passed)
}

/// A connection with typed messages.
struct Session<'a> {
    wire: Wire<'a>,
    /// The password, which messages must not show.
    secret: Option<Secret>,
}

impl Session<'_> {
    /// Waits until the server requests authentication.
    async fn greeting(&mut self) -> Result<ProbeOutcome, Failure> {
        for _ in 0..MESSAGES_MAX {
            let (kind, content) = self.receive().await?;
            match kind {
                b'R' => return Ok(ProbeOutcome::Passed),
                b'E' if is_not_for_us(&content) => return Ok(ProbeOutcome::Passed),
                b'E' => return Err(self.error("greeting", &content)),
                b'N' | b'v' => {}
                _ => return Err(malformed()),
            }
        }
        Err(endless())
    }

    /// Logs in, and waits until the server is ready for queries.
    async fn log_in(&mut self, user: &Credentials) -> Result<(), Failure> {
        let mut exchange = None;
        for _ in 0..MESSAGES_MAX {
            let (kind, content) = self.receive().await?;
            match kind {
                b'R' => self.authenticate(user, &content, &mut exchange).await?,
                b'Z' if exchange.as_ref().is_none_or(scram::Exchange::is_done) => return Ok(()),
                b'E' => return Err(self.error("login", &content)),
                // Parameters, the key for cancellation, notices, unknown protocol options.
                b'S' | b'K' | b'N' | b'v' => {}
                _ => return Err(malformed()),
            }
        }
        Err(endless())
    }

    /// Answers an authentication request of the server.
    async fn authenticate(
        &mut self,
        user: &Credentials,
        content: &[u8],
        exchange: &mut Option<scram::Exchange>,
    ) -> Result<(), Failure> {
        let (method, data) = content.split_first_chunk::<4>().ok_or_else(malformed)?;
        let password = user.password.expose();
        match (u32::from_be_bytes(*method), &mut *exchange) {
            // A server that accepts the client before it has proved its knowledge of the password is not the right one.
            (IS_IN, Some(exchange)) if !exchange.is_done() => Err(malformed()),
            (IS_IN, _) => Ok(()),
            (_, None) if password.is_empty() => {
                Err(refused("login: the server asks for a password: give `password`".into()))
            }
            (PASSWORD, None) if !self.wire.is_private() => {
                let reason = "login: the server asks for the password itself, which weir sends only over TLS: set `tls: true`";
                Err(refused(reason.into()))
            }
            (PASSWORD, None) => self.send(b'p', &[password.as_bytes(), &[0]].concat()).await,
            (MD5, None) => {
                let salt = data.first_chunk::<4>().ok_or_else(malformed)?;
                self.send(b'p', &md5_answer(user, salt)).await
            }
            (SASL, None) => {
                let mut methods = data.split(|byte| *byte == 0);
                if !methods.any(|method| method == scram::METHOD.as_bytes()) {
                    return Err(refused(
                        "login: the server wants a method that is not known here".into(),
                    ));
                }
                let (begun, first) =
                    scram::Exchange::begin(&user.password).map_err(Failure::Local)?;
                *exchange = Some(begun);
                self.send(b'p', &initial(&first)).await
            }
            (SASL_CONTINUE, Some(exchange)) => {
                let answer =
                    exchange.answer(data).map_err(|reason| refused(format!("login: {reason}")))?;
                self.send(b'p', answer.as_bytes()).await
            }
            (SASL_FINAL, Some(exchange)) => {
                exchange.finish(data).map_err(|reason| refused(format!("login: {reason}")))
            }
            _ => Err(refused("login: the server wants a method that is not known here".into())),
        }
    }

    /// Sends the query, and judges the result.
    async fn query(&mut self, query: &SqlQuery) -> Result<(), Failure> {
        self.send(b'Q', &[query.text.as_bytes(), &[0]].concat()).await?;
        let mut first = None;
        let mut rows: usize = 0;
        for _ in 0..MESSAGES_MAX {
            let (kind, content) = self.receive().await?;
            match kind {
                b'D' => {
                    if rows == 0 {
                        first = first_value(&content).ok_or_else(malformed)?.map(<[u8]>::to_vec);
                    }
                    rows += 1;
                }
                b'E' => return Err(self.error("query", &content)),
                b'Z' => return judge(query, first.as_deref()).map_err(refused),
                // Column descriptions, the end of a command, an empty query, parameters, notices.
                b'T' | b'C' | b'I' | b'S' | b'N' => {}
                // Other messages, including those of COPY, are not supported.
                _ => return Err(malformed()),
            }
        }
        Err(endless())
    }

    async fn send(&mut self, kind: u8, content: &[u8]) -> Result<(), Failure> {
        let length = (LENGTH_BYTES + content.len()) as u32;
        self.wire.send(&[&[kind], &length.to_be_bytes()[..], content].concat()).await
    }

    async fn receive(&mut self) -> Result<(u8, Vec<u8>), Failure> {
        let [kind, length @ ..] = self.wire.array::<5>().await?;
        let length = u32::from_be_bytes(length) as usize;
        let content = length.checked_sub(LENGTH_BYTES).ok_or_else(malformed)?;
        Ok((kind, self.wire.exact(content).await?))
    }

    /// The failure for an error message: `login: 28P01: password authentication failed for user "weir"`.
    fn error(&self, step: &str, content: &[u8]) -> Failure {
        let secrets: Vec<&Secret> = self.secret.iter().collect();
        let text = |kind| said(field(content, kind).unwrap_or_default(), &secrets);
        refused(format!("{step}: {}: {}", text(b'C'), text(b'M')))
    }
}

fn startup(probe: &SqlProbe) -> Vec<u8> {
    let user = probe.user.as_ref().map_or(NOBODY, |user| &user.user);
    let mut content = VERSION.to_be_bytes().to_vec();
    let pairs = [
        ("user", Some(user)),
        ("database", probe.database.as_deref()),
        ("application_name", Some("weir")),
    ];
    for (name, value) in pairs {
        let Some(value) = value else { continue };
        for text in [name, value] {
            content.extend_from_slice(text.as_bytes());
            content.push(0);
        }
    }
    content.push(0);
    let length = (LENGTH_BYTES + content.len()) as u32;
    [&length.to_be_bytes()[..], &content].concat()
}

/// The first SASL message: the method, and the client's first SCRAM message with its length.
fn initial(first: &str) -> Vec<u8> {
    let length = (first.len() as u32).to_be_bytes();
    [scram::METHOD.as_bytes(), &[0], &length, first.as_bytes()].concat()
}

/// `md5`, followed by the hash of password, user and salt.
fn md5_answer(user: &Credentials, salt: &[u8; 4]) -> Vec<u8> {
    let hash = |parts: &[&[u8]]| data_encoding::HEXLOWER.encode(&Md5::digest(parts.concat()));
    let stored = hash(&[user.password.expose().as_bytes(), user.user.as_bytes()]);
    format!("md5{}\0", hash(&[stored.as_bytes(), salt])).into_bytes()
}

/// The field of this type in an error message.
fn field(content: &[u8], kind: u8) -> Option<&[u8]> {
    content.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[kind]))
}

fn is_not_for_us(error: &[u8]) -> bool {
    let code = field(error, b'C').unwrap_or_default();
    NOT_FOR_US.iter().any(|known| code.starts_with(known))
}

/// The first value of a row; inner `None`: the value is NULL, or there are no columns.
fn first_value(row: &[u8]) -> Option<Option<&[u8]>> {
    let (columns, rest) = row.split_first_chunk::<2>()?;
    if *columns == [0, 0] {
        return Some(None);
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    match i32::from_be_bytes(*length) {
        -1 => Some(None),
        length => Some(Some(rest.get(..usize::try_from(length).ok()?)?)),
    }
}

fn malformed() -> Failure {
    Failure::Malformed("not the protocol of PostgreSQL".into())
}

fn endless() -> Failure {
    Failure::Malformed(format!("more than {MESSAGES_MAX} messages"))
}

fn refused(reason: String) -> Failure {
    Failure::Service("PostgreSQL", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hashed() {
        let user = Credentials { user: "weir".into(), password: Secret::new("secret") };
        assert_eq!(
            md5_answer(&user, b"\x01\x02\x03\x04"),
            b"md512b54bc7b57fbba1959ba01ec530395c\0"
        );
    }

    #[test]
    fn startups() {
        let probe = SqlProbe { user: None, database: None, query: None, tls: None };
        let nobody = b"\0\0\0\x29\0\x03\0\0user\0weir\0application_name\0weir\0\0";
        assert_eq!(startup(&probe), nobody);
        let user = Credentials { user: "a".into(), password: Secret::new("b") };
        let probe = SqlProbe { user: Some(user), database: Some("c".into()), ..probe };
        let known = b"\0\0\0\x31\0\x03\0\0user\0a\0database\0c\0application_name\0weir\0\0";
        assert_eq!(startup(&probe), known);
    }

    #[test]
    fn rows() {
        let check = |row: &[u8], expected| assert_eq!(first_value(row), expected, "{row:?}");
        check(b"\0\x01\0\0\0\x01t", Some(Some(b"t")));
        check(b"\0\x02\0\0\0\0\0\0\0\x01t", Some(Some(b"")));
        check(b"\0\x01\xff\xff\xff\xff", Some(None));
        check(b"\0\0", Some(None));
        for row in [
            &b""[..],
            b"\0",
            b"\0\x01",
            b"\0\x01\0\0\0\x02t",
            b"\0\x01\xff\xff\xff\xfe",
            b"\0\x01\x7f\xff\xff\xff",
        ] {
            check(row, None);
        }
    }

    #[test]
    fn errors() {
        let error = b"SFATAL\0C28P01\0Mno\0\0";
        assert_eq!(
            (field(error, b'C'), field(error, b'M')),
            (Some(&b"28P01"[..]), Some(&b"no"[..]))
        );
        assert!(is_not_for_us(error) && is_not_for_us(b"C3D000\0\0"));
        assert!(!is_not_for_us(b"SFATAL\0C57P03\0Mthe database system is starting up\0\0"));
        assert!(!is_not_for_us(b""));
    }
}
